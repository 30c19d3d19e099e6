// The other agents that libnixl has told of.
#pragma once

#include <map>
#include <string>

#include "base/sync.hpp"
#include "nixl/connection.hpp"
#include "nixl/link.hpp"

namespace weft::nixl {

/// From any thread. What is met is met behind the call (Link).
class Agents {
 public:
  /// `signal_bytes`: the most that this engine sends in a signal.
  Agents(Link::Side side, std::size_t signal_bytes)
      : side_(std::move(side)), signal_bytes_(signal_bytes) {}

  /// Keeps how the agent is reached, in place of what was told of it before, and meets it, unless
  /// it is up or being met. Fails for what can't be one, and for an address that only the agent's
  /// own machine reaches.
  Result<void> load(const std::string& agent, const std::string& info);
  /// Meets the agent again, unless it is up or being met.
  Result<void> connect(const std::string& agent);
  /// The same for one that was loaded and not disconnected since.
  Result<LinkPtr> meet_again(const std::string& agent);
  /// Stops using the agent's metadata. The engines stay connected, for the other
  /// side may have transfers of its own under way: that agent's metadata of this one still holds.
  Result<void> disconnect(const std::string& agent);
  /// `not_found` if nothing was loaded of it, or it was disconnected.
  Result<LinkPtr> find(const std::string& agent) const;
  /// The engine was closed: lets the threads of the links end.
  void close(Deadline deadline);

 private:
  struct Agent {
    Connection connection;
    LinkPtr link;
  };
  /// The link, if a meeting began.
  Result<LinkPtr> meet(const std::string& agent, Agent& known) WEFT_REQUIRES(mutex_);
  Result<LinkPtr> keep(const std::string& agent, Connection connection);
  Result<LinkPtr> meet_known(const std::string& agent);

  const Link::Side side_;
  const std::size_t signal_bytes_;
  mutable core::Mutex mutex_;
  std::map<std::string, Agent> agents_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
