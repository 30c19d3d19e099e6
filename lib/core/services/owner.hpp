// The engine as its services see it: something that handles point to, and that tasks keep alive.
#pragma once

#include <memory>
#include <weft/error.hpp>

#include "memory/segment_state.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {

class EngineState;

/// Set while the engine opens; constant afterwards.
struct Owner {
  const EngineState* engine = nullptr;  // to compare only
  std::weak_ptr<EngineState> handle;

  /// For tasks on detached threads.
  std::shared_ptr<EngineState> keep_alive() const { return handle.lock(); }
  bool owns(const SegmentState& segment) const noexcept { return segment.belongs_to(*engine); }
  /// That a peer, or what came from it, is this engine's.
  Result<void> check_own(const PeerState& peer) const {
    if (peer.engine == engine) return {};
    return fail(Code::invalid_argument, "the peer is another engine's");
  }
};

}  // namespace weft::core
