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

void prefer_node(void* address, std::size_t bytes, int node) {
  if (machine() == nullptr || node < 0 || bytes == 0) return;
  const BitmapPtr nodes(hwloc_bitmap_alloc());
  if (!nodes || hwloc_bitmap_set(nodes.get(), static_cast<unsigned>(node)) != 0) return;
  // Not strict: pages come from elsewhere when the node is full.
  hwloc_set_area_membind(machine(), address, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
                         HWLOC_MEMBIND_BYNODESET);
}

NearNode::NearNode(int node) {
  if (machine() == nullptr || node < 0 ||
      hwloc_get_nbobjs_by_type(machine(), HWLOC_OBJ_NUMANODE) < 2)
    return;
  BitmapPtr before(hwloc_bitmap_alloc()), cores(hwloc_bitmap_alloc());
  const hwloc_obj_t near =
      hwloc_get_numanode_obj_by_os_index(machine(), static_cast<unsigned>(node));
  if (!before || !cores || near == nullptr ||
      hwloc_get_cpubind(machine(), before.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_bitmap_and(cores.get(), before.get(), near->cpuset) != 0 ||
      hwloc_bitmap_iszero(cores.get()))
    return;
  if (hwloc_set_cpubind(machine(), cores.get(), HWLOC_CPUBIND_THREAD) == 0)
    before_ = before.release();
}

NearNode::~NearNode() {
  if (before_ == nullptr) return;
  hwloc_set_cpubind(machine(), before_, HWLOC_CPUBIND_THREAD);
  hwloc_bitmap_free(before_);
}

}  // namespace weft::topo
