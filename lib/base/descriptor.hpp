// A file descriptor with an owner.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace weft::core {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  /// It belongs to the caller from now on.
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Whether the file can be made smaller: a process that touches pages behind the end is killed.
inline bool may_shrink(int descriptor) noexcept {
  const int seals = fcntl(descriptor, F_GET_SEALS);
  return seals < 0 || (seals & F_SEAL_SHRINK) == 0;
}

/// Not for one that is closed either.
inline bool is_open_for_reading_only(int descriptor) noexcept {
  return (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

}  // namespace weft::core
