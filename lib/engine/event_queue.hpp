// What happened, in order, with a descriptor to wait on.
#pragma once

#include <deque>
#include <mutex>
#include <span>
#include <weft/engine.hpp>

namespace weft::core {

class EventQueue {
 public:
  EventQueue();
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void push(Event event);
  std::size_t poll(std::span<Event> events);
  std::size_t size() const;
  /// Readable while there are events.
  int fd() const noexcept { return fd_; }

 private:
  const int fd_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;
};

}  // namespace weft::core
