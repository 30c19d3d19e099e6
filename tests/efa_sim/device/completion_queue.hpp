// The device's side of a completion queue: writes entries when they are due, and events when they
// were asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "shared/queues.hpp"

namespace weft::efa_sim {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

class CompletionQueue {
 public:
  /// Events are written to the channel, if there is one.
  CompletionQueue(std::uint32_t size, Descriptor channel, std::uint64_t event);

  /// Writes the entry when it is due: entries may overtake each other by that.
  void add(const CompletionEntry& entry, Time due);
  /// Writes what is due and has room, and the event. Returns whether it did anything.
  bool advance(Time now);
  bool empty() const { return waiting_.empty(); }
  /// How often entries had to wait for room.
  std::uint64_t times_full() const { return times_full_; }
  const SharedMemory& memory() const { return queues_.memory(); }

 private:
  std::uint16_t unread() const;
  void write(CompletionEntry entry);
  bool notify();

  CompletionQueueQueues queues_;
  Descriptor channel_;
  std::uint64_t event_;
  std::multimap<Time, CompletionEntry> waiting_;
  std::uint32_t written_ = 0;
  /// The doorbell's number that the last event answered; at first none.
  std::uint32_t answered_ = ~std::uint32_t{0};
  std::uint64_t times_full_ = 0;
  bool full_ = false;
};

}  // namespace weft::efa_sim
