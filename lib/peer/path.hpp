// How transfers between some local and some remote memory go: over those of the rails that serve
// the one and those of the peer's that serve the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "peer/route.hpp"

namespace weft::core {

/// One of our rails on a path.
struct PathRail {
  Route* route = nullptr;
  Targets targets;  // belong to the rail's owning thread; not empty
};

/// Shared by all transfers between such memory; its peer outlives it.
class Path {
 public:
  void add(std::size_t rail, PathRail way) {
    if (rail >= by_rail_.size()) by_rail_.resize(rail + 1);
    rails_.push_back(rail);
    by_rail_[rail] = std::make_unique<PathRail>(std::move(way));
  }
  /// Indices of our rails, in the order of preference; not empty.
  const std::vector<std::size_t>& rails() const noexcept { return rails_; }
  /// Null if the rail is not on it.
  PathRail* of(std::size_t rail) const noexcept {
    return rail < by_rail_.size() ? by_rail_[rail].get() : nullptr;
  }

 private:
  std::vector<std::size_t> rails_;
  std::vector<std::unique_ptr<PathRail>> by_rail_;
};

/// Those to one peer that are in use, made when they are asked for. From any thread.
class Paths {
 public:
  using Rails = std::vector<std::uint32_t>;

  /// `make` is called for rails that are between no others in use.
  template <typename Make>
  Result<std::shared_ptr<Path>> between(Rails ours, Rails theirs, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::pair key(std::move(ours), std::move(theirs));
    if (const auto known = paths_.find(key); known != paths_.end())
      if (auto path = known->second.lock()) return path;
    std::erase_if(paths_, [](const auto& each) { return each.second.expired(); });
    Result<std::shared_ptr<Path>> made = make();
    if (made) paths_.insert_or_assign(std::move(key), *made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<Rails, Rails>, std::weak_ptr<Path>> paths_;
};

}  // namespace weft::core
