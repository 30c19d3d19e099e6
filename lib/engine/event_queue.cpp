#include "engine/event_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace weft::core {

EventQueue::EventQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

EventQueue::~EventQueue() {
  if (fd_ >= 0) close(fd_);
}

void EventQueue::push(Event event) {
  const Lock lock(mutex_);
  events_.push_back(std::move(event));
  if (events_.size() > 1) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

std::size_t EventQueue::poll(std::span<Event> events) {
  const Lock lock(mutex_);
  const std::size_t count = std::min(events.size(), events_.size());
  for (std::size_t i = 0; i < count; ++i) {
    events[i] = std::move(events_.front());
    events_.pop_front();
  }
  if (count > 0 && events_.empty()) {
    std::uint64_t value = 0;
    [[maybe_unused]] const ssize_t drained = read(fd_, &value, sizeof value);
  }
  return count;
}

std::size_t EventQueue::size() const {
  const Lock lock(mutex_);
  return events_.size();
}

}  // namespace weft::core
