// File descriptors with an owner, files in memory, and descriptors that say whether something is
// ready.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

/// An empty file in memory; -1, with errno. `flags`: beside MFD_CLOEXEC. It can't be executed:
/// where vm.memfd_noexec is 2 there are no others. Linux before 6.3 does not know that.
inline Descriptor open_memory_file(const char* name, unsigned flags = 0) noexcept {
  constexpr unsigned not_to_execute = 8;  // MFD_NOEXEC_SEAL
  Descriptor file(memfd_create(name, flags | MFD_CLOEXEC | not_to_execute));
  if (file.get() >= 0 || errno != EINVAL) return file;
  return Descriptor(memfd_create(name, flags | MFD_CLOEXEC));
}

/// Whether the file can be made smaller: a process that touches pages behind the end is killed.
inline bool may_shrink(int descriptor) noexcept {
  const int seals = fcntl(descriptor, F_GET_SEALS);
  return seals < 0 || (seals & F_SEAL_SHRINK) == 0;
}

/// Not for one that is closed either.
inline bool is_open_for_reading_only(int descriptor) noexcept {
  return (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

/// For one thread at a time. Others may wait on the descriptor meanwhile.
class ReadyFd {
 public:
  ReadyFd() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int get() const noexcept { return event_.get(); }

  void set(bool ready) {
    if (ready == ready_) return;
    ready_ = ready;
    std::uint64_t value = 1;
    [[maybe_unused]] const ssize_t done = ready ? write(event_.get(), &value, sizeof value)
                                                : read(event_.get(), &value, sizeof value);
  }

 private:
  const Descriptor event_;
  bool ready_ = false;
};

}  // namespace weft::core
