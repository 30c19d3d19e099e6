// The transfers that whoever waits may carry some of.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "transfer/transfer_state.hpp"

namespace weft::core {

/// From any thread. Each is in here from its submission to its end.
class OpenToWaiters {
 public:
  void add(std::shared_ptr<TransferState> transfer) {
    const std::lock_guard lock(mutex_);
    transfers_.insert(std::move(transfer));
  }
  void remove(const TransferState& transfer) {
    const std::lock_guard lock(mutex_);
    const auto found = transfers_.find(&transfer);
    if (found != transfers_.end()) transfers_.erase(found);
  }
  /// Of those of which there are chunks to carry, the one that was submitted first. Null: none. In
  /// front of it are only those whose last chunks are on their way.
  std::shared_ptr<TransferState> first() const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                    [](const auto& each) { return each->has_chunks(); });
    return found == transfers_.end() ? nullptr : *found;
  }

 private:
  struct Earlier {
    using is_transparent = void;
    static auto key(const TransferState* transfer) {
      return std::pair(transfer->submission().submitted, transfer);
    }
    static auto key(const std::shared_ptr<TransferState>& transfer) { return key(transfer.get()); }
    bool operator()(const auto& a, const auto& b) const { return key(a) < key(b); }
  };
  mutable std::mutex mutex_;
  std::set<std::shared_ptr<TransferState>, Earlier> transfers_;
};

}  // namespace weft::core
