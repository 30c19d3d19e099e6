// Meeting peers, and losing them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "control/control.hpp"
#include "metrics/ledger.hpp"
#include "peer/pairing.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/call_gate.hpp"
#include "services/event_queue.hpp"
#include "services/grants.hpp"
#include "services/imports.hpp"
#include "services/owner.hpp"
#include "services/peer_table.hpp"
#include "services/reopening.hpp"

namespace weft::core {

/// The application's threads connect, accept and disconnect. meet() is the control plane's setup
/// thread's, up() and down() are the control thread's, reap() upkeep's.
class Peers {
 public:
  struct Around {
    const Config& config;
    const Owner& owner;
    const CallGate& gate;
    const Rails& rails;
    Workers& workers;
    PeerTable& table;
    Grants& grants;
    Imports& imports;
    Reopening& reopening;
    EventQueue& events;
    const std::unique_ptr<Ledger>& ledger;         // null where nothing is to be counted
    const std::shared_ptr<ControlPlane>& control;  // null until it has started
  };
  explicit Peers(const Around& around) : around_(around) {}

  /// `keep`: the peer is met anew whenever its link ends, until disconnect().
  Result<std::shared_ptr<PeerState>> connect(std::string_view address, Deadline deadline,
                                             bool keep = false);
  /// Waits for the peer of that name.
  Result<std::shared_ptr<PeerState>> wait_for(std::string_view name, Deadline deadline);
  /// Where none comes, the error tells of the connections that came to nothing meanwhile.
  Result<std::shared_ptr<PeerState>> accept(Deadline deadline);
  /// A connection came to nothing. From the control thread.
  void refused(LinkEnd how, const Error& why);
  Result<void> disconnect(PeerState& peer);
  /// The engine closes: gives messages that wait to be sent a chance to go.
  void flush(Deadline deadline);

  // As ControlHandler.
  Result<std::vector<RailOut>> meet(LinkId link, const Introduction& self,
                                    const Introduction& theirs, const Nearness& near);
  void up(LinkId link, bool incoming);
  void health(LinkId link, Health health);
  void down(LinkId link, LinkEnd how, const Error& why);
  /// Ends the waits for peers that are gone, should the progress thread be stuck that ends them.
  /// Forgets those that are still on the rails.
  void reap(Clock::time_point now);
  void reap_all() { reap(Clock::time_point::max()); }

 private:
  // These return the rails that do not reach the peer.
  Result<std::vector<RailOut>> make_routes(const std::shared_ptr<PeerState>& met,
                                           const Introduction& self, const Nearness& near);
  Result<void> make_route(const std::shared_ptr<PeerState>& met, const Pairing& pairing,
                          const PairedRail& paired);
  Result<std::vector<RailOut>> add_to_rails(const std::shared_ptr<PeerState>& peer,
                                            std::uint64_t own_token);

  const Around around_;
  struct Dead {
    std::shared_ptr<PeerState> peer;
    Clock::time_point due;  // to be reaped
    bool on_rails = false;  // which this engine, as it closes, keeps for it until then
  };
  Mutex mutex_;
  std::vector<Dead> dead_ WEFT_GUARDED_BY(mutex_);  // and not reaped yet
  struct Troubles {
    std::size_t count = 0;
    std::string last;
  };
  Troubles troubles_ WEFT_GUARDED_BY(mutex_);  // since accept() told of them
};

}  // namespace weft::core
