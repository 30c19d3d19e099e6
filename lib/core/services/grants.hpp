// The grants that this engine gives: what peers may read and write of its memory, for how long, and
// when the memory is free again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>
#include <weft/grant.hpp>

#include "control/control.hpp"
#include "lease/directory.hpp"
#include "lease/lease_words.hpp"
#include "lease/owned_grants.hpp"
#include "memory/arrival_flush.hpp"
#include "metrics/ledger.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/call_gate.hpp"
#include "services/owner.hpp"
#include "services/peer_keys.hpp"
#include "services/peer_table.hpp"
#include "verify/hasher.hpp"

namespace weft::core {

/// The application's threads call what its handles ask for; take() and link_down() are the control
/// thread's, end_expired() upkeep's. Calls that wait must not come from callbacks.
class Grants {
 public:
  /// What it works with. `reopen` closes a rail and opens it again.
  struct Around {
    const Config& config;
    const Introduction& self;
    const CallGate& gate;
    const Rails& rails;
    Workers& workers;
    const PeerTable& peers;
    Directory& directory;
    Hasher& hasher;
    ArrivalFlush& arrivals;
    const std::unique_ptr<Ledger>& ledger;         // null where nothing is to be counted
    const std::shared_ptr<ControlPlane>& control;  // null until it has started
  };
  using Reopen = std::function<Result<void>(Rail&, Deadline)>;
  Grants(const Around& around, const OwnedGrants::Tell& tell, Reopen reopen);

  /// Once the rails are open.
  void open();
  /// Closes all keys and forgets everything: the rails are going.
  void close();

  Result<std::shared_ptr<GrantState>> grant(const std::shared_ptr<SegmentState>& segment,
                                            std::span<const Range> ranges, Rights rights,
                                            Nanoseconds ttl, Keys keys);
  Result<void> renew(GrantState& grant, Nanoseconds ttl);
  Result<Revoked> revoke(const std::shared_ptr<GrantState>& grant, Deadline deadline);
  Result<Revoked> fence(const std::shared_ptr<GrantState>& grant, Deadline deadline,
                        FenceScope reach);
  Result<void> release(SegmentState& segment, Deadline deadline);
  Result<void> publish(std::string_view name, const std::shared_ptr<GrantState>& grant);
  /// Null if it does not hold (any more).
  std::shared_ptr<GrantState> find(std::uint64_t lease) const { return owned_.find(lease); }

  /// How many hold.
  std::size_t held() const { return owned_.held(); }
  /// As OwnedGrants.
  std::vector<std::shared_ptr<GrantState>> quarantined() const { return owned_.quarantined(); }
  /// Ends those whose time is over.
  void end_expired(Clock::time_point now) { owned_.end_expired(now); }
  /// A peer is being left: takes back what was lent to it.
  void take_back_lent(LinkId link, Deadline deadline);
  /// The engine closes: takes back all that was lent, which is not closed with the rails. False if
  /// something still is.
  bool take_back_all_lent(Deadline deadline);

  // A rail is closed and opened again; as OwnedGrants.
  void rail_closes(std::uint32_t rail) { owned_.rail_closes(rail); }
  OwnedGrants::Renewed rail_opened(std::uint32_t rail, bool opened) {
    return owned_.rail_opened(rail, opened);
  }
  void renew_lease_words(std::uint32_t rail) { lease_words_->rail_opened(rail); }

  // What peers say.
  void take(const PeerState& peer, LookupRequest&& notice);
  void take(const PeerState& peer, const LookupAbandoned& notice);
  void take(const PeerState& peer, const RevokeConfirmed& notice);
  void take(const PeerState& peer, const GrantQuery& notice);
  void take(const PeerState& peer, const KeysDrained& notice);
  void link_down(LinkId link);

 private:
  Result<void> describe_epoch(GrantState::Parts& grant);
  void settle_ended();
  Revoked settle(const std::shared_ptr<GrantState>& grant, Deadline deadline);
  bool copies_finished(std::span<const std::shared_ptr<GrantState>> ended, Deadline deadline);
  bool wait_stopped(const GrantState& grant, Deadline deadline);
  Result<Process> borrower(LinkId link) const;

  const Around around_;
  const Reopen reopen_;
  std::shared_ptr<LeaseWords> lease_words_;
  OwnedGrants owned_;
  PeerKeys keys_;
};

}  // namespace weft::core
