// What a Prepared handle stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <weft/transfer.hpp>

#include "lease/remote_state.hpp"
#include "memory/segment_state.hpp"
#include "path/describe.hpp"
#include "path/path_memo.hpp"
#include "peer/rail_set.hpp"
#include "transfer/piece_list.hpp"
#include "transfer/reach.hpp"
#include "transfer/wait_predictor.hpp"

namespace weft::core {

class EngineState;

class PreparedState {
 public:
  // Of the engine, which it may outlive.
  std::weak_ptr<EngineState> engine;
  std::shared_ptr<const std::vector<std::string>> rail_names;  // for reports
  std::shared_ptr<WaitPredictor> predictor;                    // null where it is not needed
  std::shared_ptr<SegmentState> local;
  std::shared_ptr<RemoteState> remote;
  std::shared_ptr<RailSet> path;
  Direction direction = Direction::write;
  PieceList pieces{std::span<const Pair>{}};
  std::uint64_t bytes = 0;
  std::uint64_t block = 1;  // no chunk cuts one of so many bytes
  Reach reach;              // of NICs, one-sided
  // Some bytes are in reach of no rail, but GPUs copy them; null: there are none.
  std::unique_ptr<const Error> out_of_reach;
  // Where the remote segment lies for copies of the local memory's device, or why it does not.
  std::byte* lent = nullptr;
  std::string not_lent;
  bool contact = false;      // no bytes: each of its rails asks its targets for an answer
  bool staged = false;       // no NICs reach the memory on both sides
  bool mapped = false;       // the remote one is mapped here
  std::uint32_t losses = 0;  // of either memory by rails, when it was prepared
  mutable PathMemo paths;    // for policies

  /// Of the bytes that its caller has copied those that this engine copied, and not the kernel.
  std::uint64_t own_copies(std::uint64_t bytes) const noexcept { return mapped ? bytes : 0; }
  /// The application has looked at its transfer of then, or let go of it.
  void see(Clock::time_point submitted) const noexcept {
    if (predictor) predictor->see(submitted);
  }
  /// It begins to wait for one that it has had since then.
  void await(std::uint64_t of_bytes, Clock::time_point since, Deadline deadline) const noexcept {
    if (predictor) predictor->wait(of_bytes, since, deadline);
  }
};

/// Of either memory by rails that were opened again.
inline std::uint32_t losses_of(const SegmentState& local, const RemoteState& remote) {
  return local.losses() + remote.losses();
}

inline Lending lending_of(const PreparedState& prepared) {
  return {prepared.lent != nullptr, prepared.not_lent};
}

}  // namespace weft::core
