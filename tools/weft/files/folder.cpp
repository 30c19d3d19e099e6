#include "files/folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weft::tool {
namespace {

namespace fs = std::filesystem;

class Walk {
 public:
  Walk(fs::path root, const std::function<void(const std::string&, const std::string&)>& left_out)
      : root_(std::move(root)), left_out_(left_out) {}

  /// Of a folder: `name` is its path in the root, empty for that itself. An empty answer, or why
  /// it can't be looked at.
  std::string enter(const fs::path& name) {
    struct stat status {};
    if (stat((root_ / name).c_str(), &status) != 0) return std::generic_category().message(errno);
    const std::pair identity(status.st_dev, status.st_ino);
    if (std::find(above_.begin(), above_.end(), identity) != above_.end())
      return "it is a folder that it lies in";
    std::error_code error;
    above_.push_back(identity);
    for (auto at = fs::directory_iterator(root_ / name, error);
         !error && at != fs::directory_iterator(); at.increment(error))
      look_at(name / at->path().filename());
    above_.pop_back();
    return error ? error.message() : "";
  }

  std::vector<std::string> files() && { return std::move(files_); }

 private:
  void look_at(const fs::path& name) {
    std::error_code error;
    std::string why;
    switch (fs::status(root_ / name, error).type()) {
      case fs::file_type::regular:
        files_.push_back(name);
        return;
      case fs::file_type::directory:
        why = enter(name);
        break;
      case fs::file_type::not_found:  // A link may lead nowhere.
      case fs::file_type::none:
        why = error ? error.message() : "there is none";
        break;
      default:
        return;
    }
    if (!why.empty()) left_out_(name, why);
  }

  const fs::path root_;
  const std::function<void(const std::string&, const std::string&)>& left_out_;
  std::vector<std::pair<dev_t, ino_t>> above_;  // the folders that this one lies in
  std::vector<std::string> files_;
};

}  // namespace

Result<std::vector<std::string>> files_of(
    const std::string& dir,
    const std::function<void(const std::string& name, const std::string& why)>& left_out) {
  Walk walk(dir, left_out);
  if (const std::string why = walk.enter({}); !why.empty())
    return fail(Code::not_found, fmt::format("the folder '{}': {}", dir, why));
  auto files = std::move(walk).files();
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace weft::tool
