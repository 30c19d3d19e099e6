// Which rails are being closed and opened again, and have been.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <weft/memory.hpp>

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

  /// Where the rails are that have been opened again.
  std::map<std::uint32_t, Blob> moved() const {
    const std::lock_guard lock(mutex_);
    return moved_;
  }
  void has_moved(std::uint32_t rail, Blob address) {
    const std::lock_guard lock(mutex_);
    moved_.insert_or_assign(rail, std::move(address));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Done> under_way_;
  std::map<std::uint32_t, Blob> moved_;
};

}  // namespace weft::core
