// The rails that carry transfers between some local and some remote memory: those of ours that
// serve the one, and those of the peer's that serve the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "base/small_vector.hpp"
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

/// Those to one peer, made when they are asked for first. From any thread.
class RailSets {
 public:
  /// Indices of rails, in the order of preference.
  using Rails = SmallVector<std::uint32_t, 16>;

  /// `make` is called if there is no such set.
  template <typename Make>
  Result<std::shared_ptr<RailSet>> between(const Rails& ours, const Rails& theirs, Make&& make) {
    const Lock lock(mutex_);
    if (const auto known = sets_.find(std::tie(ours, theirs)); known != sets_.end())
      return known->second;
    // Cached, so that not every write() builds one.
    if (sets_.size() >= many)
      std::erase_if(sets_, [](const auto& each) { return each.second.use_count() == 1; });
    Result<std::shared_ptr<RailSet>> made = make();
    if (made) sets_.insert_or_assign({ours, theirs}, *made);
    return made;
  }

 private:
  /// By both lists, which need not be copied for a look.
  struct Before {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const {
      const auto& [our_a, their_a] = a;
      const auto& [our_b, their_b] = b;
      if (!std::ranges::equal(our_a, our_b))
        return std::ranges::lexicographical_compare(our_a, our_b);
      return std::ranges::lexicographical_compare(their_a, their_b);
    }
  };

  static constexpr std::size_t many = 16;

  Mutex mutex_;
  std::map<std::tuple<Rails, Rails>, std::shared_ptr<RailSet>, Before> sets_
      WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
