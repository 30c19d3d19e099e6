// Which rails are being closed and opened again, and have been.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>
#include <weft/place.hpp>

#include "base/completion_slot.hpp"
#include "base/sync.hpp"
#include "control/control.hpp"

namespace weft::core {

/// From any thread.
class Reopenings {
 public:
  using Done = std::shared_ptr<CompletionSlot>;
  /// Null: it begins, and `done` is what others may wait for until end(). Else the one under way.
  Done begin(std::uint32_t rail, const Done& done) {
    const Lock lock(mutex_);
    const auto [entry, first] = under_way_.try_emplace(rail, done);
    return first ? nullptr : entry->second;
  }
  void end(std::uint32_t rail) {
    const Lock lock(mutex_);
    under_way_.erase(rail);
  }

  /// Where the rails are that have been opened again.
  std::map<std::uint32_t, Blob> moved() const {
    const Lock lock(mutex_);
    return moved_;
  }
  void has_moved(std::uint32_t rail, Blob address) {
    const Lock lock(mutex_);
    moved_.insert_or_assign(rail, std::move(address));
  }

  /// The peer is told now, and will say that it follows.
  void will_follow(LinkId link, std::uint32_t rail) {
    const Lock lock(mutex_);
    ++following_[{link, rail}].times_told;
  }
  void followed(LinkId link, std::uint32_t rail) {
    const Lock lock(mutex_);
    const auto entry = following_.find({link, rail});
    if (entry == following_.end() || --entry->second.times_told > 0) return;
    entry->second.done->complete(std::nullopt);
    following_.erase(entry);
  }
  /// It won't any more.
  void link_down(LinkId link) {
    const Lock lock(mutex_);
    std::erase_if(following_, [&](const auto& each) {
      if (each.first.first != link) return false;
      each.second.done->complete(std::nullopt);
      return true;
    });
  }
  /// Peers that have been told, and may still post to where the rail was.
  std::vector<Done> followers(std::uint32_t rail) const {
    std::vector<Done> all;
    const Lock lock(mutex_);
    for (const auto& [who, follows] : following_)
      if (who.second == rail) all.push_back(follows.done);
    return all;
  }

 private:
  struct Following {
    Done done = std::make_shared<CompletionSlot>();
    unsigned times_told = 0;
  };
  mutable Mutex mutex_;
  std::map<std::uint32_t, Done> under_way_ WEFT_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Blob> moved_ WEFT_GUARDED_BY(mutex_);
  std::map<std::pair<LinkId, std::uint32_t>, Following> following_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
