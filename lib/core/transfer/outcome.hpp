// What became of each piece of a transfer.
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/piece_list.hpp"

namespace weft::core {

/// Bytes of a transfer, counted through its pieces in their order.
struct Span {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
};

/// Spans may lie in any order; those of one list do not overlap. What is in neither list is placed,
/// and what is in both untouched.
std::vector<Placed> outcome_of(const PieceList& pieces, const Picks& picks,
                               std::vector<Span> unknown, std::vector<Span> untouched);

}  // namespace weft::core
