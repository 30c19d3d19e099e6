// What an Engine handle stands for: the services, put together. Each has its own state and locks,
// and gets what it needs from those above it; its header says which threads call it. The public
// calls (engine.cpp, handles.cpp) go to the service that they concern.
#pragma once

#include <memory>
#include <vector>
#include <weft/engine.hpp>

#include "control/control.hpp"
#include "lease/directory.hpp"
#include "memory/arrival_flush.hpp"
#include "metrics/ledger.hpp"
#include "rail/hooks.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/call_gate.hpp"
#include "services/credits.hpp"
#include "services/event_queue.hpp"
#include "services/grants.hpp"
#include "services/imports.hpp"
#include "services/inbound.hpp"
#include "services/messages.hpp"
#include "services/owner.hpp"
#include "services/paths.hpp"
#include "services/peer_table.hpp"
#include "services/peers.hpp"
#include "services/reopening.hpp"
#include "services/segments.hpp"
#include "services/telemetry.hpp"
#include "services/transfers.hpp"
#include "services/upkeep.hpp"
#include "services/verification.hpp"
#include "verify/hasher.hpp"
#include "wire/introduction.hpp"

namespace weft::core {

class EngineState final : public std::enable_shared_from_this<EngineState> {
 public:
  static Result<std::shared_ptr<EngineState>> open(const Config& call, const EngineHooks& hooks);
  Result<void> close(Deadline deadline);

  const Config config;
  const EngineHooks hooks;
  const std::vector<Setting> settings;
  Introduction self;  // constant once the engine is open
  Owner owner{this, {}};
  CallGate gate;
  EventQueue events;
  ArrivalFlush arrivals;
  std::unique_ptr<Ledger> ledger;  // null where nothing is to be counted

  // Rails before the workers that drive them.
  Rails rails{config};
  Workers workers{config};
  PeerTable peer_table;
  Directory directory;
  Segments segments{config, owner, rails, workers};
  Grants grants{
      {config, self, gate, rails, workers, peer_table, directory, hasher, arrivals, ledger,
       control},
      lease_notices(),
      [this](Rail& rail, Deadline deadline) { return reopening.close_and_open(rail, deadline); }};
  Imports imports{config, owner, workers, peer_table, directory, ledger, control, lease_notices()};
  Reopening reopening{{config, owner, gate, rails, workers, peer_table, segments, grants, control}};
  Peers peers{{config, owner, gate, rails, workers, peer_table, grants, imports, reopening, events,
               ledger, control}};
  Messages messages{config, owner, workers, peer_table, events, ledger};
  Credits credits{rails, workers, peer_table};
  Verification verification{hasher, rails, grants, peer_table, control};
  Paths paths{config, owner, self, rails};
  Transfers transfers{{config, hooks, owner, gate, rails, workers, segments, paths, messages,
                       verification, events, ledger, control}};

  // Last: their threads call into everything above, and each into those before it.
  Hasher hasher;
  Inbound inbound{{peer_table, peers, grants, imports, messages, credits, reopening, verification}};
  std::shared_ptr<ControlPlane> control;  // null until it has started
  Upkeep upkeep{grants, messages, workers, peers, reopening, credits};
  Telemetry telemetry{{config, self, settings, gate, rails, workers, peer_table, segments, grants,
                       transfers, ledger}};

 private:
  EngineState(const Config& checked, std::vector<Setting> list, const EngineHooks& doors);
  Result<void> start();
  Result<void> start_control();
  Rail::Hooks rail_hooks();
  OwnedGrants::Tell lease_notices();
  bool tear_down();
};

inline Error moved_from() {
  return Error(Code::closed, "the handle was moved from");
}

/// Runs `body` if the engine can be used, and keeps its rails open meanwhile.
template <typename Body>
auto call(const std::shared_ptr<EngineState>& engine, Body&& body) -> decltype(body()) {
  if (!engine) return fail(moved_from());
  const CallGate::Call call(engine->gate);
  if (auto error = call.refused()) return fail(std::move(*error));
  return body();
}

}  // namespace weft::core
