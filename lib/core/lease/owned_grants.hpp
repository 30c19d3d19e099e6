// The grants that an engine has given: those that hold, and those whose holders have not all
// stopped yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sync.hpp"
#include "control/control.hpp"
#include "lease/grant_end.hpp"
#include "lease/grant_state.hpp"

namespace weft::core {

/// The owner's half of the protocol of leases (lib/core/lease/README.md); ImportedGrants is the
/// other. From any thread.
class OwnedGrants {
 public:
  using GrantPtr = std::shared_ptr<GrantState>;
  using Tell = std::function<void(LinkId, Notice)>;
  /// Hears of each grant once, when it has ended, by itself too.
  using Ended = std::function<void(std::uint64_t lease, GrantEnd why)>;
  /// The process at the other end of a link, where memory may be lent to it; else why not.
  using Borrower = std::function<Result<Process>(LinkId)>;
  OwnedGrants(Tell tell, Ended ended, Borrower borrower)
      : tell_(std::move(tell)), ended_(std::move(ended)), borrower_(std::move(borrower)) {}

  void add(const GrantPtr& grant);
  /// Null if it does not hold (any more).
  GrantPtr find(std::uint64_t lease) const;
  /// Those of a segment that a peer may still use.
  std::vector<GrantPtr> of_segment(const SegmentState& segment) const;
  /// Those of a segment that hold.
  std::vector<GrantPtr> held_of(const SegmentState& segment) const;
  /// Those of which a holder may still use memory that was lent to it.
  std::vector<GrantPtr> lent() const;
  /// Asks one of the holders to stop; returns what was lent to it.
  std::vector<GrantPtr> take_back(LinkId from);
  /// How many hold.
  std::size_t held() const;
  /// Those that have ended, and whose memory is not proven free.
  std::vector<GrantPtr> quarantined() const;
  /// It holds for at least so long from now on: tells its holders. False if it holds no more.
  bool renew(GrantState& grant, Nanoseconds ttl);
  /// Takes its word down, and asks all holders to stop. Without effect if it has ended before.
  void end(GrantState& grant, GrantEnd why);
  /// Ends those whose time is over, and looks after those whose borrowers may have ended.
  void end_expired(Clock::time_point now);
  /// It is settled: nothing more is to be known of it.
  void forget(const GrantState& grant);
  /// Those that may be settled by now, waited for or not; each once.
  std::vector<GrantPtr> take_settleable();
  void note_if_settleable(const GrantPtr& grant);
  /// As GrantState. Returns the notices to send, and to which peers.
  void rail_closes(std::uint32_t rail);
  using Renewed = std::map<LinkId, std::vector<RenewedKey>>;
  Renewed rail_opened(std::uint32_t rail, bool opened);
  /// Closes all keys and forgets everything: the rails are going.
  void clear();

  // The peers' answers.
  /// `rails`: as GrantState::hold().
  void take(LinkId from, const GrantQuery& query,
            std::optional<GrantState::RailNumbers> rails = std::nullopt);
  void take(LinkId from, const RevokeConfirmed& confirmed);
  void link_down(LinkId link);

 private:
  void look_after_the_bereft();
  void ended(const GrantState& grant, const std::vector<OwnedLease::Holder>& holders, GrantEnd why);
  GrantPtr known(std::uint64_t lease) const;
  Result<Process> borrower_of(const GrantState& grant, LinkId link, const GrantQuery& query) const;
  std::vector<GrantPtr> all() const;

  const Tell tell_;
  const Ended ended_;
  const Borrower borrower_;
  std::atomic<bool> bereft_{false};  // there may be some
  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, GrantPtr> grants_ WEFT_GUARDED_BY(mutex_);  // by lease
  // The same by segment, and lease: one may have few of many grants, or nearly all.
  std::map<std::pair<const SegmentState*, std::uint64_t>, GrantPtr> by_segment_;
  std::unordered_map<std::uint64_t, GrantPtr> settleable_
      WEFT_GUARDED_BY(mutex_);  // by lease, since they were looked for
  Clock::time_point next_expiry_ = Clock::time_point::max();
};

}  // namespace weft::core
