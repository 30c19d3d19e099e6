#include "topo/machine.hpp"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "topo/control_group.hpp"
#include "topo/hwloc.hpp"

namespace weft::topo {
namespace {

/// Loaded once; reading a topology is safe from several threads. Never destroyed: threads of
/// engines that nobody closes read it while statics go away.
hwloc_topology* machine() {
  static hwloc_topology* const topology = [] {
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return hwloc_topology_t{};
    HwlocPtr owned(made);
    return hwloc_topology_load(made) == 0 ? owned.release() : nullptr;
  }();
  return topology;
}

/// The cores that this process may run on; null where it can't be told.
BitmapPtr allowed_cores() {
  if (machine() == nullptr) return nullptr;
  BitmapPtr allowed(hwloc_bitmap_alloc());
  if (!allowed || hwloc_get_cpubind(machine(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return nullptr;
  return allowed;
}

bool has_one_node() {
  return hwloc_get_nbobjs_by_type(machine(), HWLOC_OBJ_NUMANODE) < 2;
}

/// The nodes of the pages that the kernel tells of; null where it can't be told. hwloc asks for
/// each page, so stretches of large memory stand for all.
BitmapPtr nodes_of(const void* address, std::size_t bytes) {
  constexpr std::size_t stretches = 64, stretch = std::size_t{1} << 20;
  const std::size_t step = std::max(bytes / stretches, stretch);
  BitmapPtr nodes(hwloc_bitmap_alloc()), some(hwloc_bitmap_alloc());
  if (!nodes || !some) return nullptr;
  for (std::size_t at = 0; at < bytes; at += step) {
    if (hwloc_get_area_memlocation(machine(), static_cast<const std::byte*>(address) + at,
                                   std::min(stretch, bytes - at), some.get(),
                                   HWLOC_MEMBIND_BYNODESET) != 0 ||
        hwloc_bitmap_or(nodes.get(), nodes.get(), some.get()) != 0)
      return nullptr;
  }
  return nodes;
}

/// Automatic NUMA balancing hides pages, to see their users, and Linux 6.1 tells no node of those
/// that are hidden (move_pages). To ask for one in another way is to use it. Memory may be large,
/// so some of its pages stand for all; those that do not exist yet are not made by it. False if
/// there are none.
bool uncover_pages(const void* address, std::size_t bytes) {
  constexpr std::size_t most = 256;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(address) + bytes;
  const std::uintptr_t step = std::max<std::uintptr_t>(1, (end - begin) / page / most) * page;
  bool any = false;
  for (std::uintptr_t at = begin; at < end; at += step) {
    unsigned char exists = 0;
    int node = -1;
    if (mincore(reinterpret_cast<void*>(at), page, &exists) == 0 && (exists & 1) != 0)
      any =
          syscall(SYS_get_mempolicy, &node, nullptr, 0, at, MPOL_F_NODE | MPOL_F_ADDR) == 0 || any;
  }
  return any;
}

}  // namespace

unsigned Cores::usable() const {
  if (!quota) return allowed;
  return static_cast<unsigned>(std::clamp(std::ceil(*quota), 1.0, static_cast<double>(allowed)));
}

Cores cores() {
  Cores found{.quota = cpu_quota()};
  const BitmapPtr allowed = allowed_cores();
  if (!allowed) return found;
  const int cores =
      hwloc_get_nbobjs_inside_cpuset_by_type(machine(), allowed.get(), HWLOC_OBJ_CORE);
  const int units = hwloc_bitmap_weight(allowed.get());
  found.allowed = static_cast<unsigned>(std::max({1, cores, cores > 0 ? 0 : units}));
  return found;
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
  BitmapPtr nodes = nodes_of(address, bytes);
  if (nodes && hwloc_bitmap_iszero(nodes.get()) != 0 && !has_one_node() &&
      uncover_pages(address, bytes))
    nodes = nodes_of(address, bytes);
  return nodes && hwloc_bitmap_weight(nodes.get()) == 1 ? hwloc_bitmap_first(nodes.get()) : -1;
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
  if (machine() == nullptr || node < 0 || has_one_node()) return;
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

OneCore::OneCore(unsigned index) {
  if (machine() == nullptr) return;
  BitmapPtr all(hwloc_bitmap_alloc()), one(hwloc_bitmap_alloc());
  if (!all || !one || hwloc_get_cpubind(machine(), all.get(), HWLOC_CPUBIND_THREAD) != 0) return;
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(machine(), all.get(), HWLOC_OBJ_CORE);
  if (cores < 2) return;
  const hwloc_obj_t core = hwloc_get_obj_inside_cpuset_by_type(
      machine(), all.get(), HWLOC_OBJ_CORE, index % static_cast<unsigned>(cores));
  if (core == nullptr || hwloc_bitmap_and(one.get(), all.get(), core->cpuset) != 0) return;
  all_ = all.release();
  one_ = one.release();
}

OneCore::~OneCore() {
  keep(false);
  hwloc_bitmap_free(one_);
  hwloc_bitmap_free(all_);
}

void OneCore::keep(bool kept) {
  if (kept == kept_ || all_ == nullptr) return;
  hwloc_set_cpubind(machine(), kept ? one_ : all_, HWLOC_CPUBIND_THREAD);
  kept_ = kept;
}

}  // namespace weft::topo
