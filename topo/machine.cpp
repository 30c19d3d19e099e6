#include "machine.hpp"

#include <algorithm>

#include "hwloc.hpp"

namespace weft::topo {
namespace {

/// Loaded once; reading a topology is safe from several threads.
hwloc_topology* machine() {
  static const HwlocPtr topology = [] {
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return HwlocPtr();
    HwlocPtr owned(made);
    if (hwloc_topology_load(made) != 0) return HwlocPtr();
    return owned;
  }();
  return topology.get();
}

/// The cores that this process may run on; null where it can't be told.
BitmapPtr allowed_cores() {
  if (machine() == nullptr) return nullptr;
  BitmapPtr allowed(hwloc_bitmap_alloc());
  if (!allowed || hwloc_get_cpubind(machine(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return nullptr;
  return allowed;
}

}  // namespace

unsigned usable_cores() {
  const BitmapPtr allowed = allowed_cores();
  if (!allowed) return 1;
  const int cores =
      hwloc_get_nbobjs_inside_cpuset_by_type(machine(), allowed.get(), HWLOC_OBJ_CORE);
  const int units = hwloc_bitmap_weight(allowed.get());
  return static_cast<unsigned>(std::max({1, cores, cores > 0 ? 0 : units}));
}

std::vector<int> usable_nodes() {
  const BitmapPtr allowed = allowed_cores(), nodes(hwloc_bitmap_alloc());
  std::vector<int> found;
  if (!allowed || !nodes) return found;
  hwloc_cpuset_to_nodeset(machine(), allowed.get(), nodes.get());
  for (int node = hwloc_bitmap_first(nodes.get()); node >= 0;
       node = hwloc_bitmap_next(nodes.get(), node))
    found.push_back(node);
  return found;
}

int numa_node_of(const void* address, std::size_t bytes) {
  if (machine() == nullptr || bytes == 0) return -1;
  const BitmapPtr nodes(hwloc_bitmap_alloc());
  if (!nodes || hwloc_get_area_memlocation(machine(), address, bytes, nodes.get(),
                                           HWLOC_MEMBIND_BYNODESET) != 0)
    return -1;
  return hwloc_bitmap_weight(nodes.get()) == 1 ? hwloc_bitmap_first(nodes.get()) : -1;
}

}  // namespace weft::topo
