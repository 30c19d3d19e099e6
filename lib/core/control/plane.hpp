// The control plane. Split by behaviour: plane.cpp (starting, stopping, calls from other
// threads), connecting.cpp (calls of connect), keeping.cpp (links that are made anew when they
// end), peers.cpp (which connection is the link to a peer, and the handler's calls), liveness.cpp
// (heartbeats and death).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/sync.hpp"
#include "control/asio.hpp"
#include "control/attempt.hpp"
#include "control/connection.hpp"
#include "control/control.hpp"
#include "control/credentials.hpp"
#include "control/dialer.hpp"
#include "control/host_door.hpp"
#include "control/listener.hpp"
#include "control/namesakes.hpp"
#include "control/same_host.hpp"
#include "control/tuning.hpp"

namespace weft::core {

/// Its threads keep it alive. What is posted to its contexts refers to it without owning it.
class ControlPlane : public std::enable_shared_from_this<ControlPlane> {
 public:
  /// Starts listening. `self` without a token, `handler` must outlive the plane. What is returned
  /// stops it with its last copy.
  static Result<std::shared_ptr<ControlPlane>> start(const ControlConfig& config, Introduction self,
                                                     ControlHandler& handler,
                                                     const ControlTuning& tuning = {});
  /// For start().
  ControlPlane(ControlConfig config, ControlTuning tuning, Introduction self,
               ControlHandler& handler);

  // plane.cpp; from any thread.
  /// Where peers reach this engine; empty without a listener.
  const std::string& address() const noexcept { return self_.address; }
  /// Queues a notice; dropped if the link is down.
  void send(LinkId link, Notice notice);
  /// This engine's rail has another address: peers met from now on are told that one.
  void rail_moved(std::uint32_t rail, Blob address);
  /// The peer of that name is not met anew any more.
  void let_go(std::string name);
  /// Says goodbye on a link; down() follows, with an error of that code: `closed` if this engine
  /// wants it no more, another if the data path is broken.
  void hang_up(LinkId link, std::string reason, Code code = Code::closed);
  /// Says goodbye on all links, and joins the threads. No handler call is under way or comes after
  /// it returned ok; `timed_out` if a handler call did not return.
  Result<void> stop(Deadline deadline);
  /// For the log.
  void trouble(const Error& error) const;

  // connecting.cpp; from any thread.
  /// Meets the engine at `address`. Returns when the link is up; the existing link if the two have
  /// met already. Not from within a handler call.
  /// `keep`: whenever the link ends, the peer is met anew, as soon as it can be, until let_go().
  Result<LinkId> connect(std::string_view address, Deadline deadline, bool keep = false);

  // What connections ask for and report; control thread only, as all that follows.
  asio::io_context& context() noexcept { return io_; }
  const ControlConfig& config() const noexcept { return config_; }
  const ControlTuning& tuning() const noexcept { return tuning_; }
  /// With a fresh token.
  Introduction introduction() const;
  /// For a connection of that pass.
  HostClaim host_claim(const HostPass& pass) const;
  /// For a new connection, made by that call of connect(), or accepted (null). Null without
  /// credentials.
  std::unique_ptr<Tls> new_tls(const Attempt* attempt) const;
  bool proven_by(const Proof& proof) const { return page_.knows(proof); }

  // peers.cpp
  /// The peer is known, and this engine chooses.
  void choose(const ConnectionPtr& connection);
  /// The connection is now the link to its peer; one that was is gone.
  void adopt(const ConnectionPtr& connection);
  /// The peer says that the connection with this token of ours is the link.
  void is_duplicate(const ConnectionPtr& connection, std::uint64_t token);
  /// One of the two sides said how its meeting went: if both have, the link goes up, or is met
  /// again.
  void agree(const ConnectionPtr& connection);
  void received(LinkId link, Notice notice);
  void health(LinkId link, Health health);
  void leaving(LinkId link, std::uint64_t taken);
  /// Reports the connection as gone, once, and closes it after `last` was sent.
  void end(const ConnectionPtr& connection, LinkEnd how, const Error& why,
           const std::optional<ControlMessage>& last);
  void closed(const ConnectionPtr& connection);

 private:
  /// The link to the peer of one name.
  struct Place {
    ConnectionPtr link;
    ConnectionPtr leaving;  // an earlier one, whose meet() has not returned yet
    Namesakes namesakes;
  };

  // plane.cpp
  Result<void> open();
  void run(asio::io_context& context, const char* name);
  ConnectionPtr add(asio::ip::tcp::socket socket, AttemptPtr attempt);
  void accepted(asio::ip::tcp::socket socket);
  Result<Answered> answer(const HostQuestion& question) const;
  void shut_down();
  void note_if_quiet();

  // connecting.cpp
  void begin(const AttemptPtr& attempt, const HostPort& where);
  void succeed(const AttemptPtr& attempt, const ConnectionPtr& link);
  void dial(const AttemptPtr& attempt, Result<Endpoints> endpoints);
  void dialled(const AttemptPtr& attempt, Result<asio::ip::tcp::socket> socket);
  void abandon(const AttemptPtr& attempt);
  /// The attempt waits for this link from here on.
  void join(const AttemptPtr& attempt, const ConnectionPtr& link);

  // keeping.cpp
  struct Kept {
    std::string address;
    std::unique_ptr<asio::steady_timer> timer;
    Nanoseconds pause{};  // before the next attempt
  };
  void keep(const std::string& name, const std::string& address);
  void miss(const std::string& name);
  void redial(const std::string& name);

  // peers.cpp
  void start_meeting(Place& place);
  void meeting_ended(const ConnectionPtr& connection, Result<std::vector<RailOut>> out);
  void go_up(const ConnectionPtr& connection);
  void refused(LinkEnd how, const Error& why) const;
  void report_down(const ConnectionPtr& connection);
  std::optional<ControlMessage> with_taken(const Connection& connection,
                                           std::optional<ControlMessage> last) const;
  void move_attempts(const ConnectionPtr& from, const ConnectionPtr& to);
  void forget(const ConnectionPtr& connection);
  bool has_namesake(Place& place, const Connection& old, const Connection& fresh);

  // liveness.cpp
  void start_beating();
  void wait_for_beat(Clock::time_point when);
  void send_heartbeats();
  void forgive(Nanoseconds lateness);
  /// Returns when to look again.
  Clock::time_point drop_dead_peers(Clock::time_point now);

  const ControlConfig config_;
  const ControlTuning tuning_;
  Introduction self_;
  ControlHandler& handler_;
  const ProofPage page_;
  std::unique_ptr<Credentials> credentials_;  // null: connections are plain

  asio::io_context io_{1};
  asio::io_context setup_{1};
  asio::executor_work_guard<asio::io_context::executor_type> io_work_ = asio::make_work_guard(io_);
  asio::executor_work_guard<asio::io_context::executor_type> setup_work_ =
      asio::make_work_guard(setup_);
  std::thread io_thread_, setup_thread_;
  /// A handler call did not return in time: none is made any more.
  std::atomic<bool> silenced_{false};

  // Control thread.
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<HostDoor> door_;               // null: no socket could be had
  std::map<LinkId, ConnectionPtr> connections_;  // until closed
  std::map<LinkId, ConnectionPtr> strangers_;    // of these, accepted and not chosen: oldest first
  std::map<std::string, Place> places_;          // by the peer's name
  std::map<std::string, Kept> kept_;             // likewise
  std::map<AttemptPtr, std::shared_ptr<Dialer>> dialers_;
  asio::steady_timer beat_timer_{io_};
  Clock::time_point next_beat_;
  bool shut_down_ = false;

  std::atomic<unsigned> meets_running_{0};

  mutable Mutex mutex_;  // for what follows
  Condition changed_;
  std::unordered_map<LinkId, ConnectionPtr> up_ WEFT_GUARDED_BY(mutex_);
  std::set<AttemptPtr> attempts_ WEFT_GUARDED_BY(mutex_);
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
  bool quiet_ WEFT_GUARDED_BY(mutex_) = false;  // shut down, and nothing is under way
  unsigned threads_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::core
