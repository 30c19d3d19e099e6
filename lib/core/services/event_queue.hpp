// What happened, in order, with a descriptor to wait on.
#pragma once

#include <deque>
#include <span>
#include <weft/engine.hpp>

#include "base/descriptor.hpp"
#include "base/sync.hpp"

namespace weft::core {

/// From any thread.
class EventQueue {
 public:
  void push(Event event);
  std::size_t poll(std::span<Event> events);
  std::size_t size() const;
  /// Readable while there are events.
  int fd() const noexcept { return ready_.get(); }

 private:
  mutable Mutex mutex_;
  ReadyFd ready_;  // set() with the mutex
  std::deque<Event> events_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
