// The importer's side of a peer's grant, behind the Remote handle.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.hpp"
#include "base/use_count.hpp"
#include "lease/borrowed.hpp"
#include "memory/segment_state.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

class PeerState;

class RemoteState {
 public:
  RemoteState(std::shared_ptr<PeerState> peer, GrantDescription description)
      : peer_(std::move(peer)),
        description_(std::move(description)),
        keys_(by_rail(description_.keys)),
        epoch_keys_(by_rail(description_.epoch_keys)) {}
  ~RemoteState() { Borrowed::close_aside(borrowed_); }

  const std::shared_ptr<PeerState>& peer() const noexcept { return peer_; }
  const GrantDescription& description() const noexcept { return description_; }
  /// Transfers that use it. Closed when the owner ends the grant, or this side gives it back.
  UseCount& users() noexcept { return users_; }
  /// Its memory, where this process may map it. Closed once users() is closed and idle.
  const std::shared_ptr<Borrowed>& borrowed() const noexcept { return borrowed_; }

  /// This side uses it no more, whatever its owner does.
  void give_back() noexcept {
    given_back_ = true;
    users_.close();
  }
  /// Why it can't be used, once users() is closed, or its time is over.
  Error ended_error() const {
    if (!given_back_) return stale("the owner ended the grant");
    return Error(Code::closed, "this side has disconnected, or closes")
        .with_peer(description_.engine);
  }
  Error expired_error() const { return stale("the time of the grant is over"); }

  /// When it must not be used any more, by this machine's clock.
  Clock::time_point expires() const noexcept { return expires_; }
  /// The owner has said so. It never takes back what it said before.
  void holds_until(Clock::time_point when) noexcept {
    Clock::time_point known = expires_;
    while ((known == Clock::time_point::max() || known < when) &&
           !expires_.compare_exchange_weak(known, when)) {
    }
  }

  /// That rail of the owner's carries it, through the bounce-buffer transport at least.
  bool carried_by(std::uint32_t owner_rail) const noexcept {
    return reachable_on(owner_rail) || lost_by(owner_rail) || bounce_on(owner_rail) != nullptr;
  }
  /// Why that rail has no key for it, in the owner's words; empty if it does not say.
  std::string why_bounced(std::uint32_t owner_rail) const {
    if (lost_by(owner_rail)) return keys_[owner_rail].why_lost;
    const BouncedRail* bounced = bounce_on(owner_rail);
    return bounced != nullptr ? bounced->why : "";
  }
  bool reachable_on(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].known && !keys_[owner_rail].lost &&
           has_lease_word(owner_rail);
  }
  /// How many of the owner's rails have lost their key for it.
  std::uint32_t losses() const noexcept { return losses_; }
  bool has_lease_word(std::uint32_t owner_rail) const noexcept {
    return owner_rail < epoch_keys_.size() && epoch_keys_[owner_rail].known;
  }
  /// Its extents have this size, a power of two, in the segment. No key is good on both sides of a
  /// seam.
  std::uint64_t extent_bytes() const noexcept { return no_seams; }
  /// That rail has a key for the extent that this segment offset lies in. Not for ever.
  bool reachable_on(std::uint32_t owner_rail, std::uint64_t /*offset*/) const noexcept {
    return reachable_on(owner_rail);
  }
  /// Of the extent that this segment offset lies in.
  std::uint64_t key(std::uint32_t owner_rail, std::uint64_t /*offset*/) const {
    return keys_[owner_rail].key.load(std::memory_order_relaxed);
  }
  /// Where a segment offset lies for RMA on that rail of the owner's.
  std::uint64_t rma_address(std::uint32_t owner_rail, std::uint64_t offset) const {
    return keys_[owner_rail].base + (offset - description_.ranges.front().offset);
  }
  /// The word that holds description().epoch while the grant holds, on a rail of the owner's.
  RailKey lease_word(std::uint32_t owner_rail) const {
    if (!has_lease_word(owner_rail)) return {owner_rail, 0, 0};
    const Key& word = epoch_keys_[owner_rail];
    return {owner_rail, word.base, word.key.load(std::memory_order_relaxed)};
  }
  /// This side does not reach the memory by that rail: the bounce-buffer transport carries it.
  void stage_on(std::uint32_t owner_rail, const std::string& why) {
    const Lock lock(renewing_);
    if (reachable_on(owner_rail)) lose(keys_[owner_rail], why);
  }
  /// It can't be read. Before others see this.
  void lose_lease_word(std::uint32_t owner_rail) { epoch_keys_[owner_rail].known = false; }
  /// The owner has registered its memory anew with one of its rails. From any thread; what is
  /// posted with the old key meanwhile fails.
  void renew(const RenewedKey& renewed) {
    const Lock lock(renewing_);
    if (!has_lease_word(renewed.rail)) return;
    // Reads of what is lent are proven by it, on rails that have lost their keys too.
    epoch_keys_[renewed.rail].key = renewed.epoch_key;
    if (!reachable_on(renewed.rail)) return;
    if (renewed.why_lost) return lose(keys_[renewed.rail], *renewed.why_lost);
    keys_[renewed.rail].key = renewed.key;
  }

 private:
  const BouncedRail* bounce_on(std::uint32_t owner_rail) const noexcept {
    const auto& bounced = description_.bounced;
    const auto found = std::find_if(bounced.begin(), bounced.end(), [&](const BouncedRail& each) {
      return each.rail == owner_rail;
    });
    return found != bounced.end() ? &*found : nullptr;
  }
  Error stale(const char* why) const {
    return Error(Code::stale, why).with_peer(description_.engine);
  }

  bool lost_by(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].lost;
  }

  struct Key {
    bool known = false;
    std::uint64_t base = 0;
    std::atomic<std::uint64_t> key{0};
    std::atomic<bool> lost{false};  // for good
    std::string why_lost = {};      // once it is
  };
  void lose(Key& key, const std::string& why) {
    key.why_lost = why;
    key.lost = true;
    ++losses_;
  }
  using ByRail = std::vector<Key>;
  static ByRail by_rail(const std::vector<RailKey>& keys) {
    std::uint32_t rails = 0;
    for (const RailKey& key : keys) rails = std::max(rails, key.rail + 1);
    ByRail known(rails);
    for (const RailKey& key : keys) {
      known[key.rail].known = true;
      known[key.rail].base = key.base;
      known[key.rail].key = key.key;
    }
    return known;
  }

  const std::shared_ptr<PeerState> peer_;
  const GrantDescription description_;
  Mutex renewing_;  // of keys_ and epoch_keys_, which readers look at without it
  ByRail keys_, epoch_keys_;
  std::atomic<std::uint32_t> losses_{0};
  std::atomic<Clock::time_point> expires_{Clock::time_point::max()};
  std::atomic<bool> given_back_{false};  // before users_ is closed
  UseCount users_;
  const std::shared_ptr<Borrowed> borrowed_ = std::make_shared<Borrowed>();
};

}  // namespace weft::core
