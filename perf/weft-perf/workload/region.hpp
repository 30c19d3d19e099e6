// Memory of a side, of the kind and at the place that was asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <weft/engine.hpp>

#include "raw/pages.hpp"
#include "workload/gpu_memory.hpp"
#include "workload/pattern.hpp"

namespace weft::perf {

/// `out_of_memory` where the machine has less free.
Result<void> check_room(std::uint64_t bytes);

/// A segment whose memory goes with it.
class Region {
 public:
  /// `place`: as check_memory() has it. Fails as check_room() does.
  static Result<Region> make(Engine& engine, const std::string& place, std::uint64_t bytes);

  Region(Region&&) = default;
  Region& operator=(Region&&) = delete;
  ~Region();

  Segment& segment() noexcept { return segment_; }
  /// Writes the stretches, and canaries everywhere else, so that no page is new any more.
  /// A stop ends it early.
  Result<void> fill(std::span<const Stretch> stretches, const std::stop_token& stop = {});
  /// Compares every byte. `before`: what is done first to the bytes that are compared.
  Result<Findings> check(std::span<const Stretch> stretches,
                         const std::function<void(std::span<std::byte>)>& before = {}) const;
  /// Nobody uses it any more, or it is `quarantined`, and its memory stays.
  Result<void> release(Deadline deadline);

 private:
  Region(std::optional<Pages> pages, std::optional<GpuMemory> gpu, Segment segment)
      : pages_(std::move(pages)), gpu_(std::move(gpu)), segment_(std::move(segment)) {}
  bool adopted() const noexcept { return pages_ || gpu_; }

  std::optional<Pages> pages_;  // One of these two, or the segment owns its memory.
  std::optional<GpuMemory> gpu_;
  Segment segment_;
};

}  // namespace weft::perf
