// Closes a rail and opens it again, which ends for certain whatever was posted over it, and tells
// the peers where it is now.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <weft/engine.hpp>

#include "control/control.hpp"
#include "rail/rails.hpp"
#include "rail/reopen_timer.hpp"
#include "rail/workers.hpp"
#include "services/call_gate.hpp"
#include "services/grants.hpp"
#include "services/owner.hpp"
#include "services/peer_table.hpp"
#include "services/reopenings.hpp"
#include "services/segments.hpp"

namespace weft::core {

/// Any thread reopens; the rest says itself which thread calls it. Endpoints are closed on detached
/// threads, since that may block for ever in some providers.
class Reopening {
 public:
  struct Around {
    const Config& config;
    const Owner& owner;
    CallGate& gate;
    const Rails& rails;
    Workers& workers;
    const PeerTable& peers;
    Segments& segments;
    Grants& grants;
    const std::shared_ptr<ControlPlane>& control;  // null until it has started
  };
  explicit Reopening(const Around& around) : around_(around) {}

  /// What the application asks for: waits for the peers to follow, too.
  Result<void> reopen(std::string_view name, Deadline deadline);
  /// Waits until the rail is open again.
  Result<void> close_and_open(Rail& rail, Deadline deadline);
  /// Upkeep's. Reopens rails that neither complete nor fail what they have out: some providers do
  /// neither when a NIC dies (efa in libfabric 1.17), and others when a peer freezes or is cut off
  /// (tcp), whose operations would keep local memory for as long. Tries rails again that could not
  /// be opened.
  void watch(Clock::time_point now);

  // The control thread's.
  void peer_up(const PeerState& peer);
  void link_down(LinkId link) { reopenings_.link_down(link); }
  void take(PeerState& peer, RailMoved&& notice);
  void take(const PeerState& peer, const RailFollowed& notice);

 private:
  void begin(Rail& rail, const Reopenings::Done& done);
  void reopen_detached(std::uint32_t index, const Reopenings::Done& done);
  void tell_all(Rail& rail, OwnedGrants::Renewed renewed);
  void tell(const PeerState& peer, std::uint32_t rail, Blob address);
  void follow(PeerState& peer, std::uint32_t rail, Blob address);

  struct Watched {
    explicit Watched(Nanoseconds patience) : rail(patience), lost(patience) {}

    ReopenTimer rail;
    ReopenTimer lost;  // its operations to peers that are dead
  };

  const Around around_;
  Reopenings reopenings_;
  std::map<std::uint32_t, Watched> watches_;  // upkeep's
};

}  // namespace weft::core
