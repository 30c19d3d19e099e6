// Strides of a KV cache's groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <weft/kv.hpp>

namespace weft::kv {

/// The strides of one group on one rank, in bytes. An index with regions of its own has stride 0
/// here and a step in the list of regions instead.
struct Shape {
  std::uint64_t vector = 0;  ///< One head of one token: the smallest piece that ever moves.
  std::uint64_t token = 0;
  std::uint64_t head = 0;
  std::uint64_t layer = 0;
  std::uint64_t part = 0;
  std::uint64_t block = 0;
  std::size_t layer_regions = 0;  ///< Regions from one layer's to the next layer's.
  std::size_t part_regions = 0;   ///< Regions from keys' to values'.
  std::uint64_t region_bytes = 0;
};

constexpr std::uint32_t parts_of(const Group& group) noexcept {
  return group.parts == Parts::latent ? 1 : 2;
}

constexpr bool has_layer_regions(const Group& group) noexcept {
  return group.regions == Regions::per_layer || group.regions == Regions::per_layer_and_part;
}

constexpr bool has_part_regions(const Group& group) noexcept {
  return group.regions == Regions::per_part || group.regions == Regions::per_layer_and_part;
}

/// How many regions the group is allocated in.
inline std::size_t regions_of(const Group& group) noexcept {
  const std::size_t of_layer = has_part_regions(group) ? parts_of(group) : 1;
  return has_layer_regions(group) ? of_layer * group.layers.size() : of_layer;
}

/// The strides of a group whose fields don't contradict each other, when the rank holds `heads`
/// heads. Nothing if a region would exceed 64 bits.
std::optional<Shape> shape_of(const Group& group, std::uint32_t heads) noexcept;

/// The heads that a rank holds, out of `kv_heads`.
HeadRange heads_of(std::uint32_t kv_heads, TensorParallel tp) noexcept;

/// The heads that source rank `src` has to send to destination rank `dst`; count 0 if none. Every
/// head of a destination rank comes from exactly one source rank.
HeadRange heads_to_send(std::uint32_t kv_heads, TensorParallel src, TensorParallel dst) noexcept;

}  // namespace weft::kv
