// The owner's side of a grant, behind the Grant handle.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>
#include <weft/deadline.hpp>

#include "base/process.hpp"
#include "base/sync.hpp"
#include "lease/lease_words.hpp"
#include "lease/owned_lease.hpp"
#include "memory/segment_state.hpp"
#include "wire/grant_codec.hpp"

namespace weft::core {

inline bool includes(Rights rights, Rights wanted) noexcept {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(rights) & bits) == bits;
}

/// The owner's side of a grant. Its keys have exactly its rights. Where they are its own, closing
/// them cuts off this grant and no other. Where it shares them, they are replaced to cut off a
/// holder (KeyReplacements). From any thread.
class GrantState {
 public:
  using KeyPtr = std::shared_ptr<ExtentKey>;
  struct Parts {
    std::shared_ptr<SegmentState> segment;
    GrantDescription description;
    std::vector<KeyPtr> keys;  // those of the description, in its order
    std::unique_ptr<Epoch> epoch;
    /// The rails with which closing the registration does not keep out what a peer has posted
    /// (FenceScope), and that were not closed themselves since the grant's end.
    std::set<std::uint32_t> unfenced = {};
  };
  explicit GrantState(Parts parts);

  SegmentState& segment() const noexcept { return *parts_.segment; }
  const GrantDescription& description() const noexcept { return parts_.description; }
  bool writable() const noexcept { return includes(description().rights, Rights::write); }
  /// Whether its holders have to have stopped before the memory is free: holders that may write,
  /// and holders that have mapped it. A read by a NIC learns from the lease word that it was late.
  bool binding() const;
  /// A holder may still use memory that was lent to it.
  bool lent() const;
  /// A holder that went without confirming may still use memory that was lent to it.
  bool bereft() const;
  /// Waits until none of those is left. False if the deadline passed first.
  bool wait_borrowers_ended(Deadline deadline) const;
  /// Waits until that one has confirmed. False if the deadline passed first.
  bool wait_returned(OwnedLease::Holder holder, Deadline deadline) const;
  /// Closing the keys keeps out whatever a peer has posted.
  bool keys_fence() const { return unfenced_rails().empty(); }
  /// It has that key.
  bool has(const ExtentKey& key) const;
  /// Who holds it; empty if it has ended.
  std::vector<OwnedLease::Holder> holders() const;
  /// The shared keys that a holder of this grant may use that must be kept out: one that is gone,
  /// or all since cut_all().
  std::vector<KeyPtr> uncut() const;
  void cut_all();
  std::set<std::uint32_t> unfenced_rails() const;
  /// The description with the keys that hold now.
  GrantDescription current() const;
  /// The keys that hold now where they are not those of the description.
  std::vector<RenewedKey> renewed() const;
  /// One of its keys as it is now.
  RenewedKey renewed(const ExtentKey& key) const;

  /// Whether it allows `rights` on these bytes; the bounce-buffer transport asks before it touches
  /// memory.
  bool allows(Rights rights, std::uint64_t offset, std::uint64_t length) const;

  /// Copies of a device's that the bounce-buffer transport makes under it. Closed when it ends, and
  /// idle when the last of them has ended: before that the memory is not free.
  UseCount& copying() noexcept { return copying_; }

  /// It was not ended, and its time is not over.
  bool held() const;
  Clock::time_point expires() const noexcept { return expires_; }
  /// It holds until then, if it holds now. Returns the holders, who are to be told; nothing if it
  /// holds no more.
  std::optional<std::vector<OwnedLease::Holder>> renew(Clock::time_point until);

  // As OwnedLease.
  /// A holder that has a process may map the memory: it may use it until it has confirmed, or that
  /// process has ended, whatever becomes of the keys. Of this engine's rails the holder posts to
  /// those that it is paired with; without them, to any.
  using RailNumbers = std::set<std::uint32_t>;
  bool hold(OwnedLease::Holder holder, std::shared_ptr<const Process> borrower = nullptr,
            std::optional<RailNumbers> rails = std::nullopt);
  /// Also takes the lease word down, before it returns. Nothing if it has ended before.
  std::optional<std::vector<OwnedLease::Holder>> end();
  /// The same if its time is over: it was not renewed since the caller looked.
  std::optional<std::vector<OwnedLease::Holder>> end_if_expired(Clock::time_point now);
  /// With `strays` it counts as lost: only its mapping is gone.
  bool confirmed(OwnedLease::Holder holder, bool strays = false);
  void lost(OwnedLease::Holder holder);
  bool over() const;
  /// It is over, and its keys are closed: nothing is left to be done.
  bool spent() const;
  /// settle() would find it quiescent, and nothing more is to come.
  bool settleable() const;
  /// It has ended, and a peer or a device may still touch its memory.
  bool quarantined() const;
  /// For one that was found to be: why. The code is `quarantined`.
  Error why_quarantined() const;
  /// Waits until no holder is left that may still confirm. False if the deadline passed first.
  bool wait_confirmed(Deadline deadline) const;

  /// How it stands after its end: closes the keys, which may block, if it is over, and if those
  /// holders that have not confirmed are gone and closing keeps them out. From `quiescent` on the
  /// owner may use the memory for something else.
  Revoked settle();
  /// Closes the keys, which may block. If they fence, and none of the closings fails, no peer can
  /// use the grant any more, confirmed or not; returns whether that is so.
  bool fence();
  /// One of its rails is about to be closed and opened again. If the grant has ended its own keys
  /// do not come back.
  void rail_closes(std::uint32_t rail);
  /// It was closed, and opened if that could be done. Its new keys, if it has some, and the holders
  /// of the grant.
  struct Reopened {
    std::vector<RenewedKey> keys;
    std::vector<OwnedLease::Holder> holders;
  };
  Reopened rail_opened(std::uint32_t rail, bool opened);
  /// Closes the keys because the rails are going.
  void close();

 private:
  bool borrowers_ended() const WEFT_REQUIRES(mutex_);
  bool close_keys();
  bool own_keys_closed() const;
  std::vector<KeyPtr> keys_with(std::uint32_t rail) const;
  std::vector<KeyPtr> uncut_keys() const WEFT_REQUIRES(mutex_);
  void cut_holders() WEFT_REQUIRES(mutex_);
  bool lose(OwnedLease::Holder holder) WEFT_REQUIRES(mutex_);
  bool unfenced() const WEFT_REQUIRES(mutex_);
  std::uint64_t epoch_key(std::uint32_t rail) const;

  Parts parts_;                             // constant but for `unfenced`, with mutex_
  std::atomic<Clock::time_point> expires_;  // written with mutex_
  mutable Mutex mutex_;
  mutable Condition changed_;
  OwnedLease lease_ WEFT_GUARDED_BY(mutex_);
  UseCount copying_;
  // Holders that may map the memory, and have not confirmed.
  std::map<OwnedLease::Holder, std::shared_ptr<const Process>> borrowers_ WEFT_GUARDED_BY(mutex_);
  std::map<OwnedLease::Holder, RailNumbers> rails_of_ WEFT_GUARDED_BY(mutex_);  // where known
  RailNumbers lost_over_ WEFT_GUARDED_BY(mutex_);            // what holders posted to that are lost
  std::set<std::uint32_t> retired_ WEFT_GUARDED_BY(mutex_);  // own keys with it won't come back
  std::set<std::uint32_t> reopened_ WEFT_GUARDED_BY(mutex_);  // rails
  /// A holder that must be kept out may have the shared key up to that number.
  struct Cut {
    KeyPtr key;
    std::uint64_t number = 0;
  };
  std::vector<Cut> cuts_ WEFT_GUARDED_BY(mutex_);
  const std::set<std::uint32_t> never_fenced_ = parts_.unfenced;  // by keys
  mutable Mutex closing_;                                         // keys, which may take long
  std::atomic<bool> keys_kept_{false};  // they were to be closed, and one of them can't be
};

/// Whether one of the sorted ranges holds all of these bytes.
bool covered_by(std::span<const Range> ranges, std::uint64_t offset, std::uint64_t length);

/// Sorts and merges ranges and checks that they lie within `size` bytes; all of it if there are
/// none.
Result<std::vector<Range>> normalise(std::span<const Range> ranges, std::uint64_t size);

}  // namespace weft::core
