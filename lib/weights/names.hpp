// What both sides must agree on besides notes, and what both check.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <weft/weights.hpp>

#include "weights/note.hpp"

namespace weft::weights {

/// Of a subscriber's grant on a segment, in its engine's directory.
inline std::string grant_name(const Round& round, std::uint32_t segment) {
  return fmt::format("weights/{:016x}/{}/{}", round.leader, round.number, segment);
}

/// Raised once for each write of a publisher. The numbers of rounds are counted for each leader, so
/// two leaders would use the same ids without a part of the random number.
inline std::uint64_t signal_id(const Round& round) {
  return tag + ((round.leader & 0xffff) << 24) + (round.number & 0xffffff);
}

inline Result<void> check_rank(const Engine& engine, const Rank& self, const Segments& segments) {
  for (const auto& segment : segments)
    if (!segment) return fail(Code::invalid_argument, "a segment is missing");
  for (const Shard& shard : self.shards)
    if (shard.segment >= segments.size())
      return fail(Code::invalid_argument,
                  fmt::format("{} of {} lies in segment {}, and there are {}", shard.name,
                              self.name, shard.segment, segments.size()));
  const auto settings = engine.info().settings;
  const auto progress = std::find_if(settings.begin(), settings.end(),
                                     [](const Setting& each) { return each.name == "progress"; });
  if (progress != settings.end() && progress->value == "manual")
    return fail(Code::unsupported, "weights need an engine with threads of its own (progress)");
  return {};
}

}  // namespace weft::weights
