#include "common/free_memory.hpp"

#include <algorithm>

#include "topo/control_group.hpp"

namespace weft::tool {

std::optional<std::uint64_t> free_memory() {
  const auto system = topo::available_memory();
  const auto group = topo::memory_room();
  if (system && group) return std::min(*system, group->left);
  return group ? group->left : system;
}

}  // namespace weft::tool
