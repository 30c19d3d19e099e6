// The rails that carry transfers between some local and some remote memory: those of ours that
// serve the one, and those of the peer's that serve the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "peer/route.hpp"

namespace weft::core {

/// One of our rails in a set.
struct RailUse {
  Route* route = nullptr;
  Targets targets;  // belong to the rail's owning thread; not empty
  // How many of those have to say that a write is visible there: 0 where completions prove it.
  std::size_t proofs = 0;
};

/// Shared by all transfers between such memory; its peer outlives it.
class RailSet {
 public:
  void add(std::size_t rail, RailUse use) {
    if (rail >= by_rail_.size()) by_rail_.resize(rail + 1);
    rails_.push_back(rail);
    by_rail_[rail] = std::make_unique<RailUse>(std::move(use));
  }
  /// Indices of our rails, in the order of preference; not empty.
  const std::vector<std::size_t>& rails() const noexcept { return rails_; }
  /// Null if the rail is not in it.
  RailUse* of(std::size_t rail) const noexcept {
    return rail < by_rail_.size() ? by_rail_[rail].get() : nullptr;
  }

 private:
  std::vector<std::size_t> rails_;
  std::vector<std::unique_ptr<RailUse>> by_rail_;
};

/// Those to one peer that are in use, made when they are asked for. From any thread.
class RailSets {
 public:
  using Rails = std::vector<std::uint32_t>;

  /// `make` is called for rails that are between no others in use.
  template <typename Make>
  Result<std::shared_ptr<RailSet>> between(Rails ours, Rails theirs, Make&& make) {
    const Lock lock(mutex_);
    std::pair key(std::move(ours), std::move(theirs));
    if (const auto known = sets_.find(key); known != sets_.end())
      if (auto set = known->second.lock()) return set;
    std::erase_if(sets_, [](const auto& each) { return each.second.expired(); });
    Result<std::shared_ptr<RailSet>> made = make();
    if (made) sets_.insert_or_assign(std::move(key), *made);
    return made;
  }

 private:
  Mutex mutex_;
  std::map<std::pair<Rails, Rails>, std::weak_ptr<RailSet>> sets_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
