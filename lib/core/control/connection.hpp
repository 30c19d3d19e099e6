// One control connection, from the first byte to the last: the other side's identity, and how far
// the two have come. Control thread only, except offer().
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "control/asio.hpp"
#include "control/attempt.hpp"
#include "control/control.hpp"
#include "control/framed_socket.hpp"
#include "control/host_peer.hpp"
#include "control/link_end.hpp"
#include "control/liveness.hpp"
#include "wire/control_codec.hpp"
#include "wire/introduction.hpp"

namespace weft::core {

class ControlPlane;

/// A question to the peer's socket.
struct Asking {
  explicit Asking(asio::io_context& context) : socket(context), limit(context) {}
  asio::posix::stream_descriptor socket;
  asio::steady_timer limit;
};

/// A process of this host that is waited for to end. Its socket may not tell: a child that it has
/// forked keeps it open.
struct WatchedProcess {
  explicit WatchedProcess(asio::io_context& context) : descriptor(context), last_words(context) {}
  asio::posix::stream_descriptor descriptor;
  asio::steady_timer last_words;
};

/// The steps of a handshake. Where there are credentials, TLS proves them first. Both sides send
/// their preamble, Hello (where they are), and Proof (that they share a host). Then the engine with
/// the smaller (name, incarnation), the *chooser*, makes the connection the link with a Choice, or
/// names the link that exists already in a Duplicate; so two engines that connect to each other at
/// once agree on one link. Then each meets the other in its own time and says Ready. Where that
/// names rails that do not reach the other, both leave them out and meet again, so that they go on
/// pairing alike.
enum class Stage : std::uint8_t {
  securing,     // waits for the end of the TLS handshake
  greeting,     // waits for the preamble
  introducing,  // ... the Hello
  proving,      // ... the Proof
  choosing,     // ... the chooser's word
  duplicate,    // sent a Duplicate: waits for the end, or for Lost
  meeting,      // chosen: waits for meet() here, and for Ready
  up,
  over,  // reported as gone; at most last words are under way
};

class Connection final : public Wire {
 public:
  /// `attempt`: the call of connect() that made this connection; null for an accepted one.
  Connection(ControlPlane& plane, LinkId id, asio::ip::tcp::socket socket, AttemptPtr attempt);

  void start();
  void tell(const ControlMessage& message);
  /// Nothing is received or reported from here on; `last` is sent before the socket is closed.
  void retire(const std::optional<ControlMessage>& last);
  /// Ends the connection when `time` has passed, unless it is up or this is called again.
  void limit(Nanoseconds time);

  bool chosen() const noexcept { return stage == Stage::meeting || stage == Stage::up; }
  /// Whether this engine chooses among connections with this peer. Needs the peer's Hello.
  bool is_chooser() const noexcept;
  /// "peer 'name' at 1.2.3.4:5", as far as known.
  std::string who() const;

  const LinkId id;
  const bool initiated;
  Stage stage = Stage::securing;
  Introduction self, peer;
  const HostPass pass;  // by which the peer asks for descriptors
  Nearness near;
  Pulse pulse;
  bool late_threads = false;  // as of its last heartbeat
  Health health = Health::up;
  void note_health(Clock::time_point now);
  std::vector<AttemptPtr> attempts;  // calls of connect() that wait for this link

  // How far meet() has come.
  bool meet_running = false;  // from being queued until its result is known
  bool met = false;           // it left no rail out, and down() has not been called
  std::optional<std::vector<RailOut>> out, peer_out;  // by rail: what each side's Ready said
  std::atomic<bool> meet_unwanted{false};             // read on the setup thread
  LinkEnd how_over = LinkEnd::disconnected;
  std::optional<Error> why_over;  // once it is over, as how_over

 private:
  void on_open() override;
  void on_preamble(VersionRange versions) override;
  void on_frame(Bytes frame) override;
  void on_lost(LinkEnd how, Error why) override;
  void on_closed() override;

  void take(const Hello& hello);
  void take(Proof proof);
  void take(const Choice&);
  void take(const Duplicate& duplicate);
  void take(const Lost&);
  void take(Ready ready);
  void take(const Refusal& refusal);
  void take(const Heartbeat& heartbeat);
  void take(const Goodbye& goodbye);
  void take(Notice notice);
  void take(const UnknownMessage&);
  void breaks_protocol(std::string what);
  bool expect(Stage wanted, const char* what);
  void out_of_turn(const char* what);
  void doing(const char* what);

  std::shared_ptr<Connection> shared() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }

  void prove(const HostClaim& claim);
  void ask_for_proof(const HostClaim& claim);
  void answered(const HostPeer& peer, Result<Answered> answer);
  void proved(Proof proof);
  void prove_done();
  void watch(Result<Process> process);

  ControlPlane& plane_;
  asio::steady_timer limit_;
  VersionRange peer_versions_;
  // Of what this engine read in the peer's page, and the other way round, once they are known.
  std::optional<Proof> proof_, peer_proof_;
  std::unique_ptr<Asking> asking_;           // while the peer's socket is asked
  std::unique_ptr<WatchedProcess> watched_;  // null: of another host, or this one's
};

using ConnectionPtr = std::shared_ptr<Connection>;

}  // namespace weft::core
