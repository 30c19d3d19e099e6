#include "device/file/file_room.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "device/file/file_errors.hpp"

namespace weft::core {
namespace {

/// In a sentence; empty: it can't be told.
std::string free_room(int fd) {
  struct statvfs system {};
  if (fstatvfs(fd, &system) != 0) return "";
  return fmt::format(": its file system has {} free", system.f_bavail * system.f_frsize);
}

}  // namespace

Result<std::uint64_t> file_length(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return fail(file_error(path, errno));
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  if (!S_ISBLK(status.st_mode))
    return fail(Code::invalid_argument,
                fmt::format("'{}' is neither a file nor a block device", path));
  std::uint64_t length = 0;
  if (ioctl(fd, BLKGETSIZE64, &length) != 0) return fail(file_error(path, errno));
  return length;
}

Result<void> reserve_room(int fd, const std::string& path, const Range& bytes) {
  int failed = 0;
  do
    failed =
        fallocate(fd, 0, static_cast<off_t>(bytes.offset), static_cast<off_t>(bytes.length)) == 0
            ? 0
            : errno;
  while (failed == EINTR);
  switch (failed) {
    case 0:
      return {};
    case EOPNOTSUPP:
    case ENOSYS:
      return fail(Code::unsupported,
                  fmt::format("'{}': its file system can't reserve room (errno {}). Without "
                              "FileOptions::reserve, a full one shows when the file is written",
                              path, failed));
    case ENOSPC:
    case EDQUOT:
      return fail(Code::unavailable,
                  fmt::format("'{}': no room for {} bytes from {} on{} (errno {})", path,
                              bytes.length, bytes.offset, free_room(fd), failed));
    default:
      return fail(file_error(path, failed));
  }
}

}  // namespace weft::core
