#include "device/file/file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/system_error.hpp"

namespace weft::core {
namespace {

// Of no byte that a file may have.
constexpr Range opening{static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) - 1, 1};

struct flock lock_of(short kind, const Range& bytes) noexcept {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(bytes.offset);
  range.l_len = static_cast<off_t>(bytes.length);
  return range;
}

}  // namespace

int try_file_lock(int fd, short kind, const Range& bytes) noexcept {
  struct flock range = lock_of(kind, bytes);
  return fcntl(fd, F_OFD_SETLK, &range) == 0 ? 0 : errno;
}

bool is_file_locked(int failed) noexcept {
  return failed == EAGAIN || failed == EACCES;
}

bool is_file_lock_met(const std::string& path, const Range& bytes) noexcept {
  const Descriptor other(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct flock range = lock_of(F_WRLCK, bytes);
  return other.get() < 0 || fcntl(other.get(), F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

/// The kernel waits for a lock without end, so this asks again and again.
Result<OpeningLock> OpeningLock::take(int fd, bool write, const std::string& path) {
  constexpr auto patience = std::chrono::seconds(5);
  constexpr auto pause = std::chrono::milliseconds(1);
  const Deadline deadline = Deadline::in(patience);
  while (true) {
    const int failed = try_file_lock(fd, write ? F_WRLCK : F_RDLCK, opening);
    if (failed == 0) return OpeningLock(fd);
    if (!is_file_locked(failed)) {
      if (write)
        log(LogLevel::warning,
            "'{}': its file system has no locks ({}): processes that make it longer at the same "
            "time may cut it off",
            path, error_text(failed));
      return OpeningLock(-1);
    }
    if (deadline.passed())
      return fail(Code::unavailable, fmt::format("'{}' is opened by others all the time", path));
    std::this_thread::sleep_for(pause);
  }
}

OpeningLock::OpeningLock(OpeningLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

OpeningLock::~OpeningLock() {
  if (fd_ >= 0) try_file_lock(fd_, F_UNLCK, opening);
}

}  // namespace weft::core
