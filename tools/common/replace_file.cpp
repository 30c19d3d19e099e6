#include "common/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/child.hpp"

namespace weft::tool {
namespace {

Error not_written(const std::string& path, int error) {
  const bool forbidden = error == EACCES || error == EPERM || error == EROFS;
  return Error(forbidden ? Code::permission_denied : Code::unavailable,
               fmt::format("could not write '{}': {}", path, std::strerror(error)));
}

/// 0, or an error number.
int write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool is_special(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

int write_into(const std::string& path, std::string_view bytes) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.open() ? write_all(file, bytes) : errno;
}

/// 0, or an error number.
int try_beside(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return EISDIR;
  std::string beside = path + ".XXXXXX";
  const Descriptor file(mkostemp(beside.data(), O_CLOEXEC));
  return file.open() && unlink(beside.c_str()) == 0 ? 0 : errno;
}

/// The mode of a new file: mkstemp makes files that are the owner's alone.
mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/// The file itself, where `path` is a link to it.
std::string target_of(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

int replace(const std::string& path, std::string_view bytes) {
  std::string beside = path + ".XXXXXX";
  const Descriptor file(mkostemp(beside.data(), O_CLOEXEC));
  if (!file.open()) return errno;
  int error = write_all(file, bytes);
  if (error == 0 && fchmod(file.get(), usual_mode()) != 0) error = errno;
  // Some file systems say only now that the disk is full.
  if (error == 0 && fsync(file.get()) != 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(beside.c_str());
  return error;
}

}  // namespace

Result<void> replace_file(const std::string& path, std::string_view bytes) {
  const int error = is_special(path) ? write_into(path, bytes) : replace(target_of(path), bytes);
  if (error != 0) return fail(not_written(path, error));
  return {};
}

Result<void> check_replaceable(const std::string& path) {
  const auto try_special = [&] { return access(path.c_str(), W_OK) == 0 ? 0 : errno; };
  const int error = is_special(path) ? try_special() : try_beside(target_of(path));
  if (error != 0) return fail(not_written(path, error));
  return {};
}

}  // namespace weft::tool
