// A descriptor that is readable while something is ready.
#pragma once

#include <sys/eventfd.h>

#include <cstdint>

#include "base/descriptor.hpp"

namespace weft::core {

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
