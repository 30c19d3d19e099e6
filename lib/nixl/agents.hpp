// The other agents that libnixl has told of.
#pragma once

#include <map>
#include <string>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/connection.hpp"
#include "nixl/link.hpp"

namespace weft::nixl {

/// From any thread.
class Agents {
 public:
  /// `signal_bytes`: the most that this engine sends in a signal.
  Agents(Engine& engine, Cutter& cutter, std::size_t signal_bytes)
      : engine_(engine), cutter_(cutter), signal_bytes_(signal_bytes) {}

  /// Keeps how the agent is reached, in place of what was told of it before, and connects.
  Result<void> load(const std::string& agent, const std::string& info);
  /// Meets the agent again, unless it is up. Waits, for 10 s at most.
  Result<void> connect(const std::string& agent);
  /// The same for one that is loaded and went down, in a second at most: its user waits.
  Result<LinkPtr> meet_again(const std::string& agent);
  /// Stops using the agent's metadata. The engines stay connected, for the other
  /// side may have transfers of its own under way: that agent's metadata of this one still holds.
  Result<void> disconnect(const std::string& agent);
  /// `not_found` if nothing was loaded of it, or it was disconnected.
  Result<LinkPtr> find(const std::string& agent) const;

 private:
  struct Agent {
    Connection connection;
    LinkPtr link;
  };
  Result<LinkPtr> meet(const std::string& agent, const Connection& connection, Deadline deadline);
  Result<void> connect(const std::string& agent, Deadline deadline);

  Engine& engine_;
  Cutter& cutter_;
  const std::size_t signal_bytes_;
  mutable core::Mutex mutex_;
  std::map<std::string, Agent> agents_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
