// What happened on the streams, in order, and how much was copied.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "interface/control.hpp"

namespace weft::cuda_sim {

class Log {
 public:
  std::uint64_t draw() { return sequence_.fetch_add(1) + 1; }
  /// Fills in the sequence number.
  void add(Record record);
  void clear();

  const std::vector<Record>& records() const { return records_; }
  /// Copies that reached the phase.
  std::uint64_t copies(Phase phase) const { return copies_[static_cast<std::size_t>(phase)]; }
  Counters& counters() { return counters_; }

 private:
  void count(const Record& copy);

  std::atomic<std::uint64_t> sequence_{0};
  std::vector<Record> records_;
  std::array<std::uint64_t, phases> copies_{};
  Counters counters_{};
};

}  // namespace weft::cuda_sim
