// Some of a model's layers.
#pragma once

#include <cstdint>
#include <optional>
#include <weft/kv.hpp>

namespace weft::kv {

/// No range: all layers.
constexpr bool contains(const std::optional<LayerRange>& range, std::uint32_t layer) noexcept {
  return !range || (layer >= range->first && layer - range->first < range->count);
}

/// Whether a range has layers, and begins no later than with the layout's last.
Result<void> check_layer_range(const Layout& layout, const std::optional<LayerRange>& range);

}  // namespace weft::kv
