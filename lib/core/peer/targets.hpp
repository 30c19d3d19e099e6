// The peer's rails that one of ours sends to.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "providers/endpoint.hpp"

namespace weft::core {

/// Where one of ours finds it: somewhere else after either was closed and opened again.
using Whereto = std::atomic<providers::FabricAddress>;

/// One of the peer's rails, as seen from one of ours.
struct RemoteRail {
  std::uint32_t index = 0;           // in the peer's numbering
  const Whereto* whereto = nullptr;  // the route's

  /// To be asked before its keys (RemoteState): those that go with a new address are there first.
  providers::FabricAddress address() const noexcept {
    return whereto->load(std::memory_order_acquire);
  }
};

/// Taken by turns, each as often as its weight says. Not safe for several threads.
class Targets {
 public:
  void add(RemoteRail rail, std::uint64_t weight = 1) {
    turns_.push_back({rail, static_cast<std::int64_t>(weight), 0});
    all_ += static_cast<std::int64_t>(weight);
  }
  std::size_t size() const noexcept { return turns_.size(); }
  const RemoteRail& operator[](std::size_t i) const { return turns_[i].rail; }
  const RemoteRail& front() const { return turns_.front().rail; }

  /// Each earns its weight at every turn, and the one that has most pays for all: in any stretch of
  /// turns each has nearly its share.
  const RemoteRail& take_turn() {
    if (turns_.size() == 1) return front();
    for (Turn& each : turns_) each.earned += each.weight;
    const auto next =
        std::max_element(turns_.begin(), turns_.end(),
                         [](const Turn& a, const Turn& b) { return a.earned < b.earned; });
    next->earned -= all_;
    return next->rail;
  }
  /// The same among those for which it holds; null: there is none.
  template <typename Holds>
  const RemoteRail* take_turn_of(Holds&& holds) {
    Turn* next = nullptr;
    std::int64_t together = 0;
    for (Turn& each : turns_) {
      if (!holds(each.rail)) continue;
      each.earned += each.weight;
      together += each.weight;
      if (next == nullptr || next->earned < each.earned) next = &each;
    }
    if (next == nullptr) return nullptr;
    next->earned -= together;
    return &next->rail;
  }

 private:
  struct Turn {
    RemoteRail rail;
    std::int64_t weight = 1;
    std::int64_t earned = 0;
  };
  std::vector<Turn> turns_;
  std::int64_t all_ = 0;
};

}  // namespace weft::core
