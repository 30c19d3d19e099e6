// A segment whose memory lies where the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "common/gpu_memory.hpp"
#include "common/pages.hpp"

namespace weft::tool {

/// For Config::gpus of an engine that moves such memory: its GPU, where the machine's topology has
/// that. Fails as gpu_pci() does.
Result<std::vector<std::string>> gpus_near(const Config& config, const std::string& memory);

/// A segment and its memory, which goes with it.
class PlacedSegment {
 public:
  /// `memory`: as check_memory() has it. Fails as that, as GpuMemory and as Engine::add do, and
  /// where the NUMA node has no memory.
  static Result<PlacedSegment> make(Engine& engine, const std::string& memory, std::uint64_t bytes);

  PlacedSegment(PlacedSegment&&) = default;
  PlacedSegment& operator=(PlacedSegment&&) = delete;
  ~PlacedSegment();

  Segment& segment() noexcept { return segment_; }
  /// The memory, where it is a GPU's; else null, and the CPU reaches bytes().
  GpuMemory* gpu() noexcept { return gpu_ ? &*gpu_ : nullptr; }
  const GpuMemory* gpu() const noexcept { return gpu_ ? &*gpu_ : nullptr; }
  std::span<std::byte> bytes() const noexcept { return {segment_.data(), segment_.size()}; }
  /// Nobody uses it any more, or it is `quarantined`, and its memory stays.
  Result<void> release(Deadline deadline);

 private:
  PlacedSegment(std::optional<Pages> pages, std::optional<GpuMemory> gpu, Segment segment)
      : pages_(std::move(pages)), gpu_(std::move(gpu)), segment_(std::move(segment)) {}
  bool adopted() const noexcept { return pages_ || gpu_; }

  std::optional<Pages> pages_;  // One of these two, or the segment owns its memory.
  std::optional<GpuMemory> gpu_;
  Segment segment_;
};

}  // namespace weft::tool
