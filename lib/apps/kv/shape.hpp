// Strides of a KV cache's groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include <weft/kv.hpp>

namespace weft::kv {

constexpr bool is_state(const Group& group) noexcept {
  return group.tokens_per_block == 0;
}

constexpr bool has_layer_regions(const Group& group) noexcept {
  return group.regions == Regions::per_layer || group.regions == Regions::per_layer_and_field;
}

constexpr bool has_field_regions(const Group& group) noexcept {
  return group.regions == Regions::per_field || group.regions == Regions::per_layer_and_field;
}

/// Bits of one head's vector in one row.
std::uint64_t vector_bits(const Field& field) noexcept;

/// Rows of a field in one block.
std::uint32_t rows_of(const Group& group, const Field& field) noexcept;

/// Where a field lies on one rank. Strides are in bytes. A layer with a region of its own has
/// stride 0 and a step in the list of regions instead.
struct FieldShape {
  std::uint64_t vector = 0;  ///< Bytes of one head in one row: the smallest piece that ever moves.
  std::uint64_t row = 0;
  std::uint64_t head = 0;
  std::uint64_t layer = 0;
  std::uint64_t block = 0;
  std::uint64_t offset = 0;       ///< In its region, in block 0 of the first layer.
  std::size_t region = 0;         ///< Of the first layer, within the group.
  std::size_t layer_regions = 0;  ///< Regions from one layer's to the next layer's.
  std::size_t strip = 0;          ///< Fields beside one another are in the same.
};

struct GroupShape {
  std::vector<FieldShape> fields;
  std::vector<std::uint64_t> region_bytes;
};

/// The strides of a group whose numbers don't contradict each other. Nothing if a region would
/// exceed 64 bits.
std::optional<GroupShape> shape_of(const Group& group, Share tp);

}  // namespace weft::kv
