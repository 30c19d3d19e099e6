// A file descriptor with an owner, and the errors of calls that make one.
#pragma once

#include <string_view>
#include <utility>
#include <weft/error.hpp>

namespace weft::providers::shm {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// What `errno` says about a call that failed.
Error system_error(std::string_view operation);

}  // namespace weft::providers::shm
