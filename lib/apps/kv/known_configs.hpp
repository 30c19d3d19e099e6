// What models publish of their caches.
#pragma once

#include <span>
#include <string_view>

namespace weft::kv {

struct KnownConfig {
  std::string_view name;
  std::string_view id;
  std::string_view json;  ///< Of its config.json, the keys that bear on the cache.
};

std::span<const KnownConfig> known_configs() noexcept;

}  // namespace weft::kv
