// The equal parts that memory is registered in, where a NIC does not take all of it at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <weft/place.hpp>

namespace weft::core {

/// The size of extents where all of the memory is one.
inline constexpr std::uint64_t no_seams = std::uint64_t{1} << 63;

/// Extents of a segment. Their size is a power of two; the last one may be shorter. No registration
/// goes over the seam between two.
class Extents {
 public:
  explicit Extents(std::uint64_t segment_bytes, std::uint64_t extent_bytes = no_seams) noexcept
      : segment_bytes_(segment_bytes), shift_(std::countr_zero(extent_bytes)) {}

  std::uint64_t bytes() const noexcept { return std::uint64_t{1} << shift_; }
  std::size_t count() const noexcept {
    return of(std::max<std::uint64_t>(segment_bytes_, 1) - 1) + 1;
  }
  std::size_t of(std::uint64_t offset) const noexcept {
    return static_cast<std::size_t>(offset >> shift_);
  }
  Range range(std::size_t extent) const noexcept {
    const std::uint64_t begin = std::uint64_t{extent} << shift_;
    return {begin, std::min(bytes(), segment_bytes_ - begin)};
  }

 private:
  std::uint64_t segment_bytes_;
  int shift_;
};

/// Extents smaller than this are not tried where a NIC refuses larger ones: it is full.
inline constexpr std::uint64_t smallest_extent = std::uint64_t{16} << 20;

/// The largest extents of memory with such pages of which a NIC takes one with `most_pages` pages
/// (0: it names no limit).
inline std::uint64_t extent_bytes_for(std::uint64_t most_pages, std::uint64_t page_bytes) noexcept {
  if (most_pages == 0 || most_pages > no_seams / page_bytes) return no_seams;
  return std::bit_floor(most_pages * page_bytes);
}

/// Half as large, where extents of the segment had that size and one of them was refused; 0: not
/// worth a try.
inline std::uint64_t smaller_extent(std::uint64_t segment_bytes,
                                    std::uint64_t extent_bytes) noexcept {
  const std::uint64_t tried = std::min(extent_bytes, std::bit_ceil(segment_bytes));
  return tried / 2 < smallest_extent ? 0 : tried / 2;
}

}  // namespace weft::core
