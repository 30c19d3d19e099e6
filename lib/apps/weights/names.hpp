// What both sides must agree on besides notes, and what both check.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <weft/weights.hpp>

#include "weights/note.hpp"

namespace weft::weights {

/// Stages that signal_id() tells apart: 16 chunks of 65,536 hops.
inline constexpr std::uint64_t most_stages = std::uint64_t{1} << 20;

/// Raised once for each write. The numbers of rounds are counted for each leader, so two leaders
/// would use the same ids without a part of the random number.
inline std::uint64_t signal_id(const Round& round, Stage stage) {
  return tag + ((round.leader & 0xffff) << 40) + ((round.number & 0xfffff) << 20) + stage;
}

/// The pieces that one write each carries, and so one signal: those between the same two segments,
/// by which they are sorted.
inline std::vector<std::span<const Piece>> writes_of(std::span<const Piece> pieces) {
  std::vector<std::span<const Piece>> writes;
  while (!pieces.empty()) {
    const auto end = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& each) {
      return each.src_segment != pieces.front().src_segment ||
             each.dst_segment != pieces.front().dst_segment;
    });
    writes.push_back(pieces.first(static_cast<std::size_t>(end - pieces.begin())));
    pieces = pieces.subspan(writes.back().size());
  }
  return writes;
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
