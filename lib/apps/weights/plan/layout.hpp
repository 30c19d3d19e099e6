// Where the elements of a shard lie in memory.
#pragma once

#include <string>
#include <vector>
#include <weft/weights_plan.hpp>

#include "weights/plan/box.hpp"

namespace weft::weights {

/// Bytes from one index to the next, in each dimension.
Dims strides_of(const Shard& shard) noexcept;

/// Where the last element of the shard ends in its segment, in bytes.
std::uint64_t end_of(const Shard& shard) noexcept;

/// As end_of() - offset, without gaps.
std::uint64_t bytes_of(const Shard& shard) noexcept;

/// Why the shard can't be: a sentence's end, e.g. "its slice reaches beyond the tensor". Empty: it
/// can. The functions here and in box.hpp need a shard that can be.
std::string objection_to(const Shard& shard);

/// Appends the pieces that copy `box` from `src` to `dst`: as few as both layouts allow. Both
/// shards contain the box.
void copy_box(const Box& box, const Shard& src, const Shard& dst, std::vector<Piece>& pieces);

/// How many pieces copy_box() appends.
std::uint64_t count_pieces(const Box& box, const Shard& src, const Shard& dst) noexcept;

/// Contiguous runs that the shard is in its segment.
std::uint64_t count_runs(const Shard& shard) noexcept;

}  // namespace weft::weights
