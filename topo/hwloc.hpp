// Owners of hwloc's objects.
#pragma once

#include <hwloc.h>

#include <memory>

namespace weft::topo {

struct HwlocDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocPtr = std::unique_ptr<hwloc_topology, HwlocDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

}  // namespace weft::topo
