// Transfers within one agent: a second engine of the process, opened when the first one is asked
// for, is the peer of the agent's own.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "nixl/link.hpp"
#include "nixl/registration.hpp"

namespace weft::nixl {

/// From any thread.
class Loopback {
 public:
  Loopback(Engine& own, std::string agent) : own_(own), agent_(std::move(agent)) {}

  /// The way to this agent itself, for its notifications.
  Result<LinkPtr> link();
  /// This agent's memory as that of the other engine, which begins the transfers.
  Result<std::shared_ptr<Segment>> local(Registration& registration);
  /// The same memory, as granted by the agent's own engine.
  Result<Remote> remote(Registration& registration);
  /// Before it is deregistered.
  Result<void> forget(Registration& registration, Deadline deadline);

 private:
  struct Known {
    std::shared_ptr<Segment> segment;
    std::optional<Remote> remote;
  };
  Result<void> open() WEFT_REQUIRES(mutex_);
  std::shared_ptr<Segment> take(const Registration& registration);

  Engine& own_;
  const std::string agent_;
  core::Mutex mutex_;
  std::shared_ptr<Engine> engine_ WEFT_GUARDED_BY(mutex_);
  LinkPtr link_ WEFT_GUARDED_BY(mutex_);
  std::map<const Registration*, Known> known_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::nixl
