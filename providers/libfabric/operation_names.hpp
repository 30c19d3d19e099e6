// Names for operations that are under way, for providers that report the end of one more than once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/sync.hpp"
#include "providers/endpoint.hpp"

namespace weft::providers {

/// efa reports a send, write or read once for each of its packets that fails, and a receive again
/// as failed, after its success, when the packet that tells the sender so can't be delivered
/// (libfabric 1.17, prov/efa/src/rxr: rxr_cq_write_tx_error and rxr_cq_write_rx_error, both "TODO:
/// ... Add ref counting"). By then its owner may have posted it anew, or given its memory
/// back. So the provider does not get a pointer to it but a name, which is good for one end.
///
/// All functions may be called by any thread.
class OperationNames {
 public:
  /// A name that no operation had before. Never null.
  void* give(Posted& posted);
  /// The operation with that name, which is free from now on; null if its end was told before.
  Posted* take_back(const void* name);

 private:
  struct Slot {
    Posted* posted = nullptr;
    std::uint32_t life = 0;
  };
  core::Mutex mutex_;
  std::vector<Slot> slots_
      WEFT_GUARDED_BY(mutex_);  // as many as operations were ever under way at once
  std::vector<std::uint32_t> free_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::providers
