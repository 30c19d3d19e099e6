// Signals and tagged messages: what is sent to peers, and what the application waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/engine.hpp>

#include "metrics/ledger.hpp"
#include "peer/mailbox.hpp"
#include "peer/peer_state.hpp"
#include "rail/workers.hpp"
#include "services/dated_waits.hpp"
#include "services/event_queue.hpp"
#include "services/owner.hpp"
#include "services/peer_table.hpp"

namespace weft::core {

/// The application's threads call what its handles ask for; take() is the control thread's,
/// end_overdue() upkeep's.
class Messages {
 public:
  Messages(const Config& config, const Owner& owner, Workers& workers, const PeerTable& peers,
           EventQueue& events, const std::unique_ptr<Ledger>& ledger)
      : config_(config),
        owner_(owner),
        workers_(workers),
        peers_(peers),
        events_(events),
        ledger_(ledger) {}

  Result<void> send(const std::shared_ptr<PeerState>& peer, MessageKind kind, std::uint64_t tag,
                    Bytes bytes, Deadline deadline);
  Result<std::shared_ptr<ExpectState>> expect(const std::shared_ptr<PeerState>& peer,
                                              std::uint64_t id, std::uint64_t count,
                                              NotifyOptions options);
  Result<std::shared_ptr<ReceiveState>> receive(const std::shared_ptr<PeerState>& peer,
                                                std::uint64_t tag, std::uint64_t mask,
                                                NotifyOptions options);
  /// The application gave it up.
  void given_up(const ExpectState& expectation);
  void given_up(const ReceiveState& receive);
  /// As Peer::forget().
  Result<void> forget(PeerState& peer, std::uint64_t first, std::uint64_t last);
  /// Whether a message, or what a signal carries, may be so long.
  Result<void> check_payload(const PeerState& peer, std::size_t bytes) const;
  /// Ends what has been waited for in vain until its deadline.
  void end_overdue(Clock::time_point now) { dated_waits_.end_overdue(now); }

  // What peers say.
  void take(PeerState& peer, const SignalFailed& notice);
  void take(const PeerState& peer, FallbackMessage&& notice);
  void take(const PeerState& peer, const FallbackTaken& notice);
  /// It says goodbye, and has taken so many packets of messages in all.
  void peer_leaves(const std::shared_ptr<PeerState>& peer, std::uint64_t taken);

 private:
  template <typename Wait>
  class Notifying;
  template <typename Wait, typename... Of>
  Result<std::shared_ptr<Wait>> begin(const std::shared_ptr<PeerState>& peer, Event::Kind kind,
                                      NotifyOptions options, Of... what);

  const Config& config_;
  const Owner& owner_;
  Workers& workers_;
  const PeerTable& peers_;
  EventQueue& events_;
  const std::unique_ptr<Ledger>& ledger_;  // null where nothing is to be counted
  DatedWaits dated_waits_;
};

}  // namespace weft::core
