// The stand-in's log and counters as values.
#pragma once

#include <optional>
#include <vector>

#include "interface/control.hpp"

namespace weft::cuda_sim {

inline std::vector<Record> records() {
  std::vector<Record> all(weft_cuda_sim_log(nullptr, 0));
  // More may have come meanwhile; those are for the next time.
  weft_cuda_sim_log(all.data(), all.size());
  return all;
}

/// The sequence number of the first record of the phase on the stream.
inline std::optional<std::uint64_t> sequence_of(Operation operation, Phase phase, Stream stream) {
  for (const Record& each : records())
    if (each.operation == operation && each.phase == phase && each.stream == stream)
      return each.sequence;
  return std::nullopt;
}

inline Counters counters() {
  Counters now;
  weft_cuda_sim_counters(&now);
  return now;
}

inline std::uint64_t copies(Direction direction) {
  return counters().copies[static_cast<std::size_t>(direction)];
}

inline std::uint64_t bytes_copied(Direction direction) {
  return counters().bytes[static_cast<std::size_t>(direction)];
}

}  // namespace weft::cuda_sim
