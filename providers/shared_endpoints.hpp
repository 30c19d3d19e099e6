// Endpoints that other endpoints of this process look into.
#pragma once

#include <functional>
#include <memory>

namespace weft::providers {

/// shm endpoints of one process use each other's memory without counting (libfabric 1.17,
/// prov/util/src/util_shm.c: smr_map_to_region finds them by name): what one of them still works on
/// is gone when the other is closed. So an endpoint that met another of its process is kept open
/// until the last of them closes.
class SharedEndpoint {
 public:
  SharedEndpoint();
  ~SharedEndpoint();
  SharedEndpoint(const SharedEndpoint&) = delete;
  SharedEndpoint& operator=(const SharedEndpoint&) = delete;

  /// Keeps `handles` until no SharedEndpoint is left.
  static void keep(std::shared_ptr<void> handles);
};

}  // namespace weft::providers
