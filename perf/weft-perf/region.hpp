// Memory of a side, at the place that was asked for.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <weft/engine.hpp>

namespace weft::perf {

/// A segment whose memory goes with it.
class Region {
 public:
  /// `place`: "host", "node:1". `out_of_memory` where the machine has less free.
  static Result<Region> make(Engine& engine, const std::string& place, std::uint64_t bytes);

  Region(Region&&) = default;
  Region& operator=(Region&&) = delete;
  ~Region();

  Segment& segment() noexcept { return segment_; }
  std::span<std::byte> bytes() const noexcept { return {segment_.data(), segment_.size()}; }
  /// Nobody uses it any more, or it is `quarantined`, and its memory stays.
  Result<void> release(Deadline deadline);

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* start) const;
  };
  using Mapping = std::unique_ptr<std::byte, Unmap>;
  static Result<Mapping> map_on(int node, std::size_t bytes);

  Region(Mapping mapping, Segment segment)
      : mapping_(std::move(mapping)), segment_(std::move(segment)) {}
  Mapping mapping_;  // Null where the segment owns its memory.
  Segment segment_;
};

}  // namespace weft::perf
