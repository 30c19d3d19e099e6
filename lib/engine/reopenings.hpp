// Which rails are being closed and opened again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/completion_slot.hpp"

namespace weft::core {

/// From any thread.
class Reopenings {
 public:
  using Done = std::shared_ptr<CompletionSlot>;
  /// Null: it begins, and `done` is what others may wait for until end(). Else the one under way.
  Done begin(std::uint32_t rail, const Done& done) {
    const std::lock_guard lock(mutex_);
    const auto [entry, first] = under_way_.try_emplace(rail, done);
    return first ? nullptr : entry->second;
  }
  void end(std::uint32_t rail) {
    const std::lock_guard lock(mutex_);
    under_way_.erase(rail);
  }
  bool under_way(std::uint32_t rail) const {
    const std::lock_guard lock(mutex_);
    return under_way_.contains(rail);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Done> under_way_;
};

}  // namespace weft::core
