// The transfers that waiting threads may help with.
#pragma once

#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/sync.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {

/// From any thread. Each is in here from its submission until all its chunks are taken, or its end.
class OpenToWaiters {
 public:
  /// Not one of which nothing is left: it may have ended already, and would not be removed.
  void add(std::shared_ptr<TransferState> transfer) {
    if (!transfer->has_chunks()) return;
    const Lock lock(mutex_);
    transfers_.insert(std::move(transfer));
  }
  void remove(const TransferState& transfer) {
    const Lock lock(mutex_);
    const auto found = transfers_.find(&transfer);
    if (found != transfers_.end()) transfers_.erase(found);
  }
  /// Of those with chunks to carry, the one that comes first by its class, then by its deadline, as
  /// on a rail. Null: none. Those in front of it leave: what comes back of them is the rail's.
  std::shared_ptr<TransferState> first() {
    const Lock lock(mutex_);
    while (!transfers_.empty() && !(*transfers_.begin())->has_chunks())
      transfers_.erase(transfers_.begin());
    return transfers_.empty() ? nullptr : *transfers_.begin();
  }

 private:
  struct Earlier {
    using is_transparent = void;
    static auto key(const TransferState* transfer) {
      const Submission& submission = transfer->submission();
      return std::tuple(submission.priority, submission.deadline, submission.submitted, transfer);
    }
    static auto key(const std::shared_ptr<TransferState>& transfer) { return key(transfer.get()); }
    bool operator()(const auto& a, const auto& b) const { return key(a) < key(b); }
  };
  Mutex mutex_;
  std::set<std::shared_ptr<TransferState>, Earlier> transfers_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
