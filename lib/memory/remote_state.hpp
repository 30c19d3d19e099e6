// What a Remote handle stands for: a peer's grant, on the importer's side.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/completion_slot.hpp"
#include "memory/use_count.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

class PeerState;

class RemoteState {
 public:
  RemoteState(std::shared_ptr<PeerState> peer, GrantDescription description)
      : peer_(std::move(peer)), description_(std::move(description)) {
    for (const RailKey& key : description_.keys) {
      if (key.rail >= keys_.size()) keys_.resize(key.rail + 1);
      keys_[key.rail] = key;
    }
  }

  const std::shared_ptr<PeerState>& peer() const noexcept { return peer_; }
  const GrantDescription& description() const noexcept { return description_; }
  /// Transfers that use it. Closed when the owner revokes the grant.
  UseCount& users() noexcept { return users_; }

  /// Completed when the owner has said whether the grant still holds.
  CompletionSlot& confirmed() noexcept { return confirmed_; }

  bool reachable_on(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].has_value();
  }
  std::uint64_t key(std::uint32_t owner_rail) const { return keys_[owner_rail]->key; }
  /// Where a segment offset lies for RMA on that rail of the owner's.
  std::uint64_t rma_address(std::uint32_t owner_rail, std::uint64_t offset) const {
    return keys_[owner_rail]->base + (offset - description_.ranges.front().offset);
  }

 private:
  const std::shared_ptr<PeerState> peer_;
  const GrantDescription description_;
  std::vector<std::optional<RailKey>> keys_;
  UseCount users_;
  CompletionSlot confirmed_;
};

}  // namespace weft::core
