#include "completion_queue.hpp"

#include <unistd.h>

#include <cstring>

namespace weft::efa_sim {

CompletionQueue::CompletionQueue(std::uint32_t size, Descriptor channel, std::uint64_t event)
    : queues_(SharedMemory::create(CompletionQueueQueues::bytes_for(size)), size),
      channel_(std::move(channel)),
      event_(event) {}

void CompletionQueue::add(const CompletionEntry& entry, Time due) {
  waiting_.emplace(due, entry);
}

bool CompletionQueue::advance(Time now) {
  bool wrote = false;
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const bool full = unread() >= queues_.ring.size;
    if (full && !full_) ++times_full_;
    full_ = full;
    if (full) break;
    write(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    wrote = true;
  }
  return notify() || wrote;
}

std::uint16_t CompletionQueue::unread() const {
  return static_cast<std::uint16_t>(written_ - queues_.doorbell().load(std::memory_order_acquire));
}

void CompletionQueue::write(CompletionEntry entry) {
  CompletionEntry& place = queues_.ring.at(static_cast<std::uint16_t>(written_));
  const std::uint8_t flags = entry.flags | queues_.phase_at(written_);
  // The phase bit says that the entry is there, so it comes last.
  std::atomic_ref<std::uint8_t> visible(place.flags);
  entry.flags = visible.load(std::memory_order_relaxed);
  std::memcpy(&place, &entry, sizeof entry);
  visible.store(flags, std::memory_order_release);
  ++written_;
}

/// Hardware sees each ring of a doorbell, and keeps the wish for an event until it is met; here the
/// ring that tells of entries read may hide the wish before it is seen. So one event is sent for
/// each number, which grows as events are taken: whoever takes one wishes for the next.
bool CompletionQueue::notify() {
  if (!channel_) return false;
  const std::uint32_t sequence =
      queues_.doorbell().load(std::memory_order_acquire) & doorbell_sequence_mask;
  if (sequence == answered_ || unread() == 0) return false;
  answered_ = sequence;
  // A pipe that is full holds events enough.
  [[maybe_unused]] const ssize_t written = ::write(channel_.get(), &event_, sizeof event_);
  return true;
}

}  // namespace weft::efa_sim
