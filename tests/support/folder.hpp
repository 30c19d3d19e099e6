// A folder for files of one test.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft::test {

/// There as long as this is, for this user alone.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "weft-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string at(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, whose path it returns.
  std::string write(const std::string& name, std::string_view contents, mode_t mode = 0600) const {
    std::ofstream(at(name), std::ios::binary) << contents;
    ::chmod(at(name).c_str(), mode);
    return at(name);
  }

 private:
  std::string path_;
};

}  // namespace weft::test
