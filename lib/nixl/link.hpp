// Another agent, as this one reaches it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <weft/engine.hpp>

#include "nixl/cutter.hpp"
#include "nixl/notification.hpp"

namespace weft::nixl {

/// For a connection to come about, while libnixl holds its lock. Far more than a handshake takes,
/// also beside load.
inline constexpr auto meeting_time = std::chrono::seconds(10);
/// For room in the queue of messages to a peer, which is full only if the peer does not take its
/// notifications.
inline constexpr auto longest_send = std::chrono::seconds(1);

/// An engine of this process, and the peer that the other agent's engine is to it. Shared by all
/// that was loaded of the agent.
class Link {
 public:
  Link(Engine& engine, Cutter& cutter, Peer peer, std::string agent, std::size_t signal_bytes)
      : engine_(engine),
        cutter_(cutter),
        peer_(std::move(peer)),
        agent_(std::move(agent)),
        signal_bytes_(signal_bytes) {}

  Engine& engine() const noexcept { return engine_; }
  Cutter& cutter() const noexcept { return cutter_; }
  const Peer& peer() const noexcept { return peer_; }
  const std::string& agent() const noexcept { return agent_; }
  /// Most bytes that a signal may carry to it.
  std::size_t signal_bytes() const noexcept { return signal_bytes_; }

  /// Sends a part of a notification. Waits for room until the deadline.
  Result<void> send(const Blob& part, Deadline deadline) const;

  /// Writes the path of such transfers to the log, once for each direction and kinds of memory.
  void explain(const Segment& local, const Remote& remote, Direction direction);

 private:
  Engine& engine_;
  Cutter& cutter_;
  const Peer peer_;
  const std::string agent_;
  const std::size_t signal_bytes_;
  std::atomic<unsigned> explained_{0};
};

using LinkPtr = std::shared_ptr<Link>;

}  // namespace weft::nixl
