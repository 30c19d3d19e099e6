// Memory of a side, of the kind and at the place that was asked for.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <weft/engine.hpp>

#include "common/placed_segment.hpp"
#include "workload/pattern.hpp"

namespace weft::perf {

/// `out_of_memory` where the machine has less free.
Result<void> check_room(std::uint64_t bytes);

/// A segment that is filled and checked.
class Region {
 public:
  /// Fails as check_room() and PlacedSegment::make() do.
  static Result<Region> make(Engine& engine, const std::string& memory, std::uint64_t bytes);

  Segment& segment() noexcept { return memory_.segment(); }
  /// Writes the stretches, and canaries everywhere else, so that no page is new any more.
  /// A stop ends it early.
  Result<void> fill(std::span<const Stretch> stretches, const std::stop_token& stop = {});
  /// Compares every byte. `before`: what is done first to the bytes that are compared.
  Result<Findings> check(std::span<const Stretch> stretches,
                         const std::function<void(std::span<std::byte>)>& before = {}) const;
  /// As PlacedSegment's.
  Result<void> release(Deadline deadline) { return memory_.release(deadline); }

 private:
  explicit Region(tool::PlacedSegment memory) : memory_(std::move(memory)) {}

  tool::PlacedSegment memory_;
};

}  // namespace weft::perf
