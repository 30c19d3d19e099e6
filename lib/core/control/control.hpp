// The control plane: one TCP connection per peer, over which engines meet, prove that they share a
// host, exchange notices, and notice each other's death.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/health.hpp>

#include "base/process.hpp"
#include "control/credentials.hpp"
#include "control/link_end.hpp"
#include "wire/introduction.hpp"
#include "wire/notice.hpp"

namespace weft::core {

/// One control connection, never used again within a process.
using LinkId = std::uint64_t;

/// What two engines have found out about their hosts.
struct Nearness {
  bool same_host = false;   // both sides proved it, and let the other at their memory
  bool one_host = false;    // one kernel runs both, be that proven or not
  std::string reason = {};  // why same_host is not so; empty if it is
  /// The peer's process, where that is not known by the peer's pid; else null.
  std::shared_ptr<const HostProcess> process = nullptr;
};

/// The engine's reactions to events on a link. The calls for one link come one at a time
/// and in order: meet, up, received..., leaving, down. Where a rail of either side does not reach
/// the other, meet comes again, after a down if it had succeeded here. meet() comes on the setup
/// thread, which may block, one link after the other; the rest comes on the control thread, which
/// must not. So a meet() may run beside a call for another link.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  /// The peer has introduced itself: make its rails reachable. Returns this engine's rails that do
  /// not reach it; with some it has not met, and is called again with these and the peer's out
  /// (RailAddress::why_out). On an error the link is refused and the peer is told the sentence.
  /// `self` is the introduction that was sent on this link (it holds the token for it).
  virtual Result<std::vector<RailOut>> meet(LinkId link, const Introduction& self,
                                            const Introduction& peer, const Nearness& near) = 0;
  /// Both sides have met each other: operations may be posted.
  /// `incoming` if the peer connected.
  virtual void up(LinkId link, bool incoming) = 0;
  virtual void received(LinkId link, Notice notice) = 0;
  /// How the peer does has changed: it is `up`, `slow` or `silent`. Between up() and down().
  virtual void health(LinkId link, Health health) = 0;
  /// Packets of the peer's messages that this engine has taken so far. Its goodbye says so.
  virtual std::uint64_t taken_from(LinkId) { return 0; }
  /// The peer says goodbye, and that it has taken so many packets of this engine's messages.
  /// down() follows.
  virtual void leaving(LinkId, std::uint64_t /*taken*/) {}
  /// The link is gone, or is met again. Once for each meet() that left no rail out.
  virtual void down(LinkId link, LinkEnd how, const Error& why) = 0;
};

struct ControlConfig {
  std::string listen;     // "host:port", "[v6]:port"; empty: none
  std::string advertise;  // empty: as listened on
  bool allow_unauthenticated_network = false;
  CredentialFiles credentials;
  std::string host_dir;  // for a socket that other network namespaces reach; empty: none
  /// A descriptor of the engine's for a peer of this host. Called on the control thread, and must
  /// not block. May be empty.
  std::function<Result<Descriptor>(const DescriptorName&)> show;
  Nanoseconds heartbeat{};
  Nanoseconds suspect_after{}, death_after{};  // of two heartbeats at least
  /// Bounds against strangers: connections that have not met yet, and the time they get.
  std::size_t max_strangers = 256;
  Nanoseconds handshake_time = std::chrono::seconds(5);
  /// Asked before each heartbeat: did every progress thread tick since the last one?
  std::function<bool()> progress_alive;
  /// Where the numbers of the messages of each peer begin, for tests; random if empty. They are the
  /// low half of the token.
  std::optional<std::uint32_t> first_sequence;
  /// Told why an accepted connection came to nothing. On the control thread. May be empty.
  std::function<void(LinkEnd, const Error&)> on_refused;
  /// Told about notices too large to be sent. For the log; from any thread. May be empty.
  std::function<void(const Error&)> on_trouble;
};

class ControlPlane;  // plane.hpp

}  // namespace weft::core
