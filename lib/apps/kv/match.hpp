// What two layouts have in common.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>
#include <weft/kv.hpp>

namespace weft::kv {

/// Layers and fields that a group of the source shares with a group of the destination. Pairs are
/// indices of the source and of the destination, in the order of the destination.
struct Match {
  std::size_t src_group = 0;
  std::size_t dst_group = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> layers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> fields;
};

/// All of them. Fails with `invalid_argument` if the two sides describe something in common
/// differently, or have nothing in common in a layer that both hold.
Result<std::vector<Match>> matches_of(const Layout& src, const Layout& dst);

}  // namespace weft::kv
