// Memory of a side, of the kind and at the place that was asked for.
#pragma once

#include <functional>
#include <optional>
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
  /// `memory`: as check_memory() has it. A file is made if there is none, and stays. Fails as
  /// check_room(), PlacedSegment::make() and Engine::add do.
  static Result<Region> make(Engine& engine, const std::string& memory, std::uint64_t bytes);

  Segment& segment() noexcept { return file_ ? *file_ : memory_.segment(); }
  /// What a file is filled from; else the same.
  Segment& in_memory() noexcept { return memory_.segment(); }
  /// Writes the stretches, and canaries everywhere else, so that no page is new any more.
  /// A stop ends it early.
  Result<void> fill(std::span<const Stretch> stretches, const std::stop_token& stop = {});
  /// Compares every byte. `before`: what is done first to the bytes that are compared.
  Result<Findings> check(std::span<const Stretch> stretches,
                         const std::function<void(std::span<std::byte>)>& before = {}) const;
  /// As PlacedSegment's.
  Result<void> release(Deadline deadline);

 private:
  Region(tool::PlacedSegment memory, std::optional<Segment> file)
      : memory_(std::move(memory)), file_(std::move(file)) {}
  static Result<void> copy(Segment& to, const Segment& from);

  mutable tool::PlacedSegment memory_;  // of a file: what it is filled from, and read into
  std::optional<Segment> file_;
};

}  // namespace weft::perf
