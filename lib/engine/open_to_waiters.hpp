// The transfers that whoever waits may carry some of.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transfer/transfer_state.hpp"

namespace weft::core {

/// From any thread. Each is in here from its submission to its end.
class OpenToWaiters {
 public:
  void add(std::shared_ptr<TransferState> transfer) {
    const std::lock_guard lock(mutex_);
    transfers_.push_back(std::move(transfer));
  }
  void remove(const TransferState& transfer) {
    const std::lock_guard lock(mutex_);
    std::erase_if(transfers_, [&](const auto& each) { return each.get() == &transfer; });
  }
  /// Of those of which there are chunks to carry, the one that was submitted first. Null: none.
  /// In front of it are only those whose last chunks are on their way.
  std::shared_ptr<TransferState> first() const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                    [](const auto& each) { return each->has_chunks(); });
    return found == transfers_.end() ? nullptr : *found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<TransferState>> transfers_;
};

}  // namespace weft::core
