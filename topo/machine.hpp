// The part of the machine that this process may use.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

struct hwloc_bitmap_s;

namespace weft::topo {

/// How much of the machine's cores this process may use.
struct Cores {
  unsigned allowed = 1;         // that it may run on; at least 1
  std::optional<double> quota;  // that its control groups give it the time of; nothing: all

  /// How many can be busy at once without being held back: the quota rounded up, at least 1.
  unsigned usable() const;
};
Cores cores();

/// The NUMA nodes of these cores, as the system numbers them; empty where it can't be told.
std::vector<int> usable_nodes();

/// The NUMA node that holds the memory; -1 where it lies on several, has no pages yet, or can't be
/// told.
int numa_node_of(const void* address, std::size_t bytes);

/// Lets pages that do not exist yet come from a node, if it has room. Without effect where there is
/// no such node, or the system can't.
void prefer_node(void* address, std::size_t bytes, int node);

/// Keeps the calling thread, while it lives, on those of its cores that are near a node. Changes
/// nothing if there are none, if the system can't, or if it is the only node.
class NearNode {
 public:
  explicit NearNode(int node);
  ~NearNode();
  NearNode(const NearNode&) = delete;
  NearNode& operator=(const NearNode&) = delete;

 private:
  hwloc_bitmap_s* before_ = nullptr;  // the cores that it had; null: unchanged
};

/// One of the calling thread's cores, on which it may be kept. All processes that may use the same
/// cores count them alike.
class OneCore {
 public:
  /// `index`: counted on from the first beyond the last.
  explicit OneCore(unsigned index);
  ~OneCore();
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

  /// Whether the thread keeps to it, or has all of its cores. Without effect if the system can't,
  /// or if there is no other.
  void keep(bool kept);

 private:
  hwloc_bitmap_s* all_ = nullptr;  // null: it can't be told
  hwloc_bitmap_s* one_ = nullptr;
  bool kept_ = false;
};

}  // namespace weft::topo
