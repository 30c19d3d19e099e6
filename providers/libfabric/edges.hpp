// Events on a descriptor that stays readable whatever is done about it: edges, not levels.
#pragma once

#include <sys/epoll.h>

#include <array>

#include "base/descriptor.hpp"

namespace weft::providers {

/// A descriptor of its own that becomes readable once for each thing that happens to another one
/// (edge-triggered epoll).
class Edges {
 public:
  /// fd() is negative if there can be none. The other one has to be an epoll descriptor, a socket,
  /// or what else tells of each event; when it is closed nothing more happens to it.
  explicit Edges(int of) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (epoll_.get() >= 0 && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, of, &event) != 0) epoll_ = {};
  }
  int fd() const noexcept { return epoll_.get(); }
  /// Forgets what has happened by now: to be called before it is looked at, not after. False if
  /// nothing has.
  bool forget() const noexcept {
    std::array<epoll_event, 1> events;
    return ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0) > 0;
  }

 private:
  core::Descriptor epoll_;
};

}  // namespace weft::providers
