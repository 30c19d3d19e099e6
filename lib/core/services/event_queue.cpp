#include "services/event_queue.hpp"

#include <algorithm>
#include <utility>

namespace weft::core {

void EventQueue::push(Event event) {
  const Lock lock(mutex_);
  events_.push_back(std::move(event));
  ready_.set(true);
}

std::size_t EventQueue::poll(std::span<Event> events) {
  const Lock lock(mutex_);
  const std::size_t count = std::min(events.size(), events_.size());
  for (std::size_t i = 0; i < count; ++i) {
    events[i] = std::move(events_.front());
    events_.pop_front();
  }
  ready_.set(!events_.empty());
  return count;
}

std::size_t EventQueue::size() const {
  const Lock lock(mutex_);
  return events_.size();
}

}  // namespace weft::core
