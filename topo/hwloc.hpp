// Owners of hwloc's objects.
#pragma once

#include <hwloc.h>

#include <cstring>
#include <memory>
#include <type_traits>

namespace weft::topo {

struct HwlocDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocPtr = std::unique_ptr<hwloc_topology, HwlocDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

/// The number behind an attribute: hwloc takes it from a file as it is, also if the type has no
/// such value.
template <typename Enum>
std::underlying_type_t<Enum> number_of(const Enum& attribute) {
  std::underlying_type_t<Enum> number;
  std::memcpy(&number, &attribute, sizeof number);
  return number;
}

}  // namespace weft::topo
