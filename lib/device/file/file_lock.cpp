#include "device/file/file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>

namespace weft::core {
namespace {

// Of no byte that a file may have.
constexpr Range opening{static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - 1, 1};

}  // namespace

int try_file_lock(int fd, short kind, const Range& bytes) noexcept {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(bytes.offset);
  range.l_len = static_cast<off_t>(bytes.length);
  return fcntl(fd, F_OFD_SETLK, &range) == 0 ? 0 : errno;
}

bool is_file_locked(int failed) noexcept {
  return failed == EAGAIN || failed == EACCES;
}

/// The kernel waits for a lock without end, so this asks again and again.
Result<OpeningLock> OpeningLock::take(int fd, bool write, const std::string& path) {
  constexpr auto patience = std::chrono::seconds(5);
  constexpr auto pause = std::chrono::milliseconds(1);
  const Deadline deadline = Deadline::in(patience);
  while (is_file_locked(try_file_lock(fd, write ? F_WRLCK : F_RDLCK, opening))) {
    if (deadline.passed())
      return fail(Code::unavailable, fmt::format("'{}' is opened by others all the time", path));
    std::this_thread::sleep_for(pause);
  }
  return OpeningLock(fd);
}

OpeningLock::OpeningLock(OpeningLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

OpeningLock::~OpeningLock() {
  if (fd_ >= 0) try_file_lock(fd_, F_UNLCK, opening);
}

}  // namespace weft::core
