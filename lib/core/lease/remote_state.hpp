// The importer's side of a peer's grant, behind the Remote handle.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/sync.hpp"
#include "base/use_count.hpp"
#include "lease/borrowed.hpp"
#include "lease/strays.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

class PeerState;

class RemoteState {
 public:
  RemoteState(std::shared_ptr<PeerState> peer, GrantDescription description)
      : peer_(std::move(peer)),
        description_(std::move(description)),
        keys_(keys_of(description_)),
        epoch_keys_(words_of(description_.epoch_keys)) {}
  ~RemoteState() { Borrowed::close_aside(borrowed_); }

  const std::shared_ptr<PeerState>& peer() const noexcept { return peer_; }
  const GrantDescription& description() const noexcept { return description_; }
  /// Transfers that use it. Closed when the owner ends the grant, or this side gives it back.
  UseEras& users() noexcept { return users_; }
  /// Its memory, where this process may map it. Closed once users() is closed and idle.
  const std::shared_ptr<Borrowed>& borrowed() const noexcept { return borrowed_; }

  const std::shared_ptr<Strays>& strays() const noexcept { return strays_; }
  /// Those of an earlier import of the grant, before this one is used.
  void take_over(std::shared_ptr<Strays> strays) noexcept { strays_ = std::move(strays); }

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
    if (lost_by(owner_rail)) {
      const Lock lock(renewing_);
      return keys_[owner_rail].why_lost;
    }
    const BouncedRail* bounced = bounce_on(owner_rail);
    return bounced != nullptr ? bounced->why : "";
  }
  /// That rail has a key for some of it.
  bool reachable_on(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].left > 0 && has_lease_word(owner_rail);
  }
  /// The size of its extents, a power of two: no key is good on both sides of a seam.
  std::uint64_t extent_bytes() const noexcept { return description_.extent_bytes; }
  /// That rail has a key for the extent that this segment offset lies in. Not for ever.
  bool reachable_on(std::uint32_t owner_rail, std::uint64_t offset) const noexcept {
    if (!reachable_on(owner_rail)) return false;
    const Key* key = key_at(owner_rail, offset);
    return key != nullptr && key->known && !key->lost;
  }
  /// How often a rail of the owner's has lost a key for it.
  std::uint32_t losses() const noexcept { return losses_; }
  bool has_lease_word(std::uint32_t owner_rail) const noexcept {
    return owner_rail < epoch_keys_.size() && epoch_keys_[owner_rail].known;
  }
  // Of the extent that this segment offset lies in, which is reachable on that rail.
  std::uint64_t key(std::uint32_t owner_rail, std::uint64_t offset) const {
    return key_at(owner_rail, offset)->key.load();
  }
  /// Where that offset lies for RMA.
  std::uint64_t rma_address(std::uint32_t owner_rail, std::uint64_t offset) const {
    const Key& key = *key_at(owner_rail, offset);
    return key.base + (offset - key.from);
  }
  /// All that the rail has at the moment.
  std::vector<std::uint64_t> keys_on(std::uint32_t owner_rail) const {
    std::vector<std::uint64_t> all;
    if (owner_rail < keys_.size())
      for (const Key& key : keys_[owner_rail].extents)
        if (key.known && !key.lost) all.push_back(key.key);
    return all;
  }
  /// The first of them. Without a list: each write asks for it.
  std::optional<std::uint64_t> first_key_on(std::uint32_t owner_rail) const noexcept {
    if (owner_rail < keys_.size())
      for (const Key& key : keys_[owner_rail].extents)
        if (key.known && !key.lost) return key.key.load();
    return std::nullopt;
  }
  /// The word that holds description().epoch while the grant holds, on a rail of the owner's.
  RailKey lease_word(std::uint32_t owner_rail) const {
    if (!has_lease_word(owner_rail)) return {owner_rail, 0, 0};
    const Word& word = epoch_keys_[owner_rail];
    return {owner_rail, word.base, word.key.load(std::memory_order_relaxed)};
  }
  /// This side does not reach the memory by that rail: the bounce-buffer transport carries it.
  void stage_on(std::uint32_t owner_rail, const std::string& why) {
    const Lock lock(renewing_);
    if (!reachable_on(owner_rail)) return;
    OfRail& rail = keys_[owner_rail];
    for (Key& key : rail.extents) lose(rail, key, why);
  }
  /// It can't be read. Before others see this.
  void lose_lease_word(std::uint32_t owner_rail) { epoch_keys_[owner_rail].known = false; }
  /// The owner has registered a part of its memory anew with one of its rails. From any thread.
  void renew(const RenewedKey& renewed) {
    const Lock lock(renewing_);
    if (!has_lease_word(renewed.rail)) return;
    // Reads of what is lent are proven by it, on rails that have lost their keys too.
    epoch_keys_[renewed.rail].key = renewed.epoch_key;
    if (!reachable_on(renewed.rail, renewed.from)) return;
    Key& key = *key_at(renewed.rail, renewed.from);
    if (renewed.why_lost) return lose(keys_[renewed.rail], key, *renewed.why_lost);
    key.key = renewed.key;
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

  /// It had keys and has lost them all.
  bool lost_by(std::uint32_t owner_rail) const noexcept {
    return owner_rail < keys_.size() && keys_[owner_rail].left == 0 &&
           !keys_[owner_rail].extents.empty();
  }

  struct Word {
    bool known = false;
    std::uint64_t base = 0;
    std::atomic<std::uint64_t> key{0};
  };
  struct Key {
    bool known = false;
    std::uint64_t from = 0, base = 0;
    std::atomic<std::uint64_t> key{0};
    std::atomic<bool> lost{false};  // for good
  };
  /// Of a rail, from the first extent that it has a key for to the last.
  struct OfRail {
    std::uint64_t first = 0;
    std::vector<Key> extents = {};
    std::atomic<std::uint32_t> left{0};  // keys that are not lost
    std::string why_lost = {};           // the last one, once it is
  };
  const Key* key_at(std::uint32_t owner_rail, std::uint64_t offset) const noexcept {
    const OfRail& rail = keys_[owner_rail];
    const std::uint64_t index = (offset >> shift_) - rail.first;
    return index < rail.extents.size() ? &rail.extents[index] : nullptr;
  }
  Key* key_at(std::uint32_t owner_rail, std::uint64_t offset) noexcept {
    return const_cast<Key*>(std::as_const(*this).key_at(owner_rail, offset));
  }
  void lose(OfRail& rail, Key& key, const std::string& why) {
    if (!key.known || key.lost.exchange(true)) return;
    rail.why_lost = why;
    --rail.left;
    ++losses_;
  }
  static std::uint32_t rails_of(const std::vector<RailKey>& keys) {
    std::uint32_t rails = 0;
    for (const RailKey& key : keys) rails = std::max(rails, key.rail + 1);
    return rails;
  }
  static std::vector<Word> words_of(const std::vector<RailKey>& keys) {
    std::vector<Word> words(rails_of(keys));
    for (const RailKey& key : keys) {
      words[key.rail].known = true;
      words[key.rail].base = key.base;
      words[key.rail].key = key.key;
    }
    return words;
  }
  static std::vector<OfRail> keys_of(const GrantDescription& grant) {
    const int shift = std::countr_zero(grant.extent_bytes);
    std::vector<OfRail> rails(rails_of(grant.keys));
    for (std::uint32_t index = 0; index < rails.size(); ++index) {
      std::uint64_t first = ~std::uint64_t{0}, last = 0;
      for (const RailKey& key : grant.keys)
        if (key.rail == index) {
          first = std::min(first, key.part.offset >> shift);
          last = std::max(last, key.part.offset >> shift);
        }
      if (first > last) continue;
      rails[index].first = first;
      rails[index].extents = std::vector<Key>(last - first + 1);
    }
    for (const RailKey& key : grant.keys) {
      OfRail& rail = rails[key.rail];
      Key& extent = rail.extents[(key.part.offset >> shift) - rail.first];
      extent.known = true;
      extent.from = key.part.offset;
      extent.base = key.base;
      extent.key = key.key;
      ++rail.left;
    }
    return rails;
  }

  const std::shared_ptr<PeerState> peer_;
  const GrantDescription description_;
  const int shift_ = std::countr_zero(description_.extent_bytes);
  mutable Mutex renewing_;    // of the next two, whose atomics readers look at without it
  std::vector<OfRail> keys_;  // by rail, like the next
  std::vector<Word> epoch_keys_;
  std::atomic<std::uint32_t> losses_{0};
  std::atomic<Clock::time_point> expires_{Clock::time_point::max()};
  std::atomic<bool> given_back_{false};  // before users_ is closed
  UseEras users_;
  std::shared_ptr<Strays> strays_ = std::make_shared<Strays>();
  const std::shared_ptr<Borrowed> borrowed_ = std::make_shared<Borrowed>();
};

}  // namespace weft::core
