// What a Remote handle stands for: a peer's grant, on the importer's side.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "memory/use_count.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

class PeerState;

class RemoteState {
 public:
  RemoteState(std::shared_ptr<PeerState> peer, GrantDescription description)
      : peer_(std::move(peer)), description_(std::move(description)) {
    by_rail(description_.keys, keys_);
    by_rail(description_.epoch_keys, epoch_keys_);
  }

  const std::shared_ptr<PeerState>& peer() const noexcept { return peer_; }
  const GrantDescription& description() const noexcept { return description_; }
  /// Transfers that use it. Closed when the owner ends the grant.
  UseCount& users() noexcept { return users_; }

  /// Why it can't be used, once its owner has ended it, or its time is over.
  Error ended_error() const { return stale("the owner ended the grant"); }
  Error expired_error() const { return stale("the time of the grant is over"); }

  /// When it must not be used any more, by this machine's clock.
  Clock::time_point expires() const noexcept { return expires_; }
  void set_expires(Clock::time_point when) noexcept { expires_ = when; }

  bool reachable_on(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].has_value() &&
           owner_rail < epoch_keys_.size() && epoch_keys_[owner_rail].has_value();
  }
  std::uint64_t key(std::uint32_t owner_rail) const { return keys_[owner_rail]->key; }
  /// Where a segment offset lies for RMA on that rail of the owner's.
  std::uint64_t rma_address(std::uint32_t owner_rail, std::uint64_t offset) const {
    return keys_[owner_rail]->base + (offset - description_.ranges.front().offset);
  }
  /// The word that holds description().epoch while the grant holds, on a rail of the owner's.
  const RailKey& epoch_word(std::uint32_t owner_rail) const { return *epoch_keys_[owner_rail]; }

 private:
  Error stale(const char* why) const {
    return Error(Code::stale, why).with_peer(description_.engine);
  }

  using ByRail = std::vector<std::optional<RailKey>>;
  static void by_rail(const std::vector<RailKey>& keys, ByRail& into) {
    for (const RailKey& key : keys) {
      if (key.rail >= into.size()) into.resize(key.rail + 1);
      into[key.rail] = key;
    }
  }

  const std::shared_ptr<PeerState> peer_;
  const GrantDescription description_;
  ByRail keys_, epoch_keys_;
  std::atomic<Clock::time_point> expires_{Clock::time_point::max()};
  UseCount users_;
};

}  // namespace weft::core
