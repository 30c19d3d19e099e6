// Endpoints that other endpoints of this process look into.
#pragma once

#include <memory>
#include <set>
#include <string>

namespace weft::providers {

/// shm endpoints of one process use each other's memory without counting (libfabric 1.17,
/// prov/util/src/util_shm.c: smr_map_to_region finds them by name): what one of them still works on
/// is gone when the other is closed. So an endpoint is kept open for as long as another open one of
/// this process knows it.
class SharedEndpoint {
 public:
  explicit SharedEndpoint(std::string name);
  /// The endpoint is used no more; its `handles` are closed now, or when no endpoint knows it any
  /// more.
  ~SharedEndpoint();
  SharedEndpoint(const SharedEndpoint&) = delete;
  SharedEndpoint& operator=(const SharedEndpoint&) = delete;

  /// This endpoint knows another one by its name, or does so no longer.
  void knows(const std::string& other);
  void forgets(const std::string& other);
  void leave_behind(std::shared_ptr<void> handles);

 private:
  const std::string name_;
};

}  // namespace weft::providers
