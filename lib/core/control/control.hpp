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
  Nanoseconds suspect_after{}, death_after{};
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

class ControlPlane {
 public:
  /// Starts listening. `self` without a token, `handler` must outlive the plane.
  static Result<std::unique_ptr<ControlPlane>> start(const ControlConfig& config, Introduction self,
                                                     ControlHandler& handler);
  virtual ~ControlPlane() = default;

  /// Where peers reach this engine; empty without a listener.
  virtual const std::string& address() const noexcept = 0;
  /// Meets the engine at `address`. Returns when the link is up; the existing link if the two have
  /// met already. Not from within a handler call.
  /// `keep`: whenever the link ends, the peer is met anew, as soon as it can be, until let_go().
  virtual Result<LinkId> connect(std::string_view address, Deadline deadline,
                                 bool keep = false) = 0;
  /// Queues a notice. From any thread; dropped if the link is down.
  virtual void send(LinkId link, Notice notice) = 0;
  /// This engine's rail has another address: peers met from now on are told that one. From any
  /// thread.
  virtual void rail_moved(std::uint32_t rail, Blob address) = 0;
  /// The peer of that name is not met anew any more.
  virtual void let_go(std::string name) = 0;
  /// Says goodbye on a link; down() follows, with an error of that code: `closed` if this engine
  /// wants it no more, another if the data path is broken.
  virtual void hang_up(LinkId link, std::string reason, Code code = Code::closed) = 0;
  /// Says goodbye on all links, and joins the threads. No handler call is under way or comes after
  /// it returned ok; `timed_out` if a handler call did not return.
  virtual Result<void> stop(Deadline deadline) = 0;
};

}  // namespace weft::core
