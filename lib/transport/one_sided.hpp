// RMA straight between the two segments.
#pragma once

#include <limits>

#include "transfer/copied_transfer.hpp"
#include "transport/epoch_reader.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class OneSided final : public Transport, private providers::CompletionHandler {
 public:
  OneSided(providers::Endpoint& endpoint, std::size_t rail, std::uint64_t chunk_limit)
      : endpoint_(endpoint),
        rail_(rail),
        chunk_limit_(chunk_limit),
        most_chunks_(endpoint.capability().rma_pieces),
        epochs_(endpoint, rail, [this](Op& op, const providers::Completion& completion) {
          sink().chunk_ended(op, completion);
        }) {}

  /// Copies the pieces, and proves what it has read unless it is `trusted`, by the calling thread;
  /// from any thread. What is not all has to be posted.
  CopiedAtOnce copy_at_once(const PreparedState& prepared, const Picks& picks, bool trusted);

  /// May block; before the first peer is met.
  Result<void> prepare() { return epochs_.prepare(); }

  std::uint64_t chunk_limit(const Route&) const override { return chunk_limit_; }
  std::size_t most_chunks(const Route&) const override { return most_chunks_; }
  std::size_t room(const Route&) const override { return std::numeric_limits<std::size_t>::max(); }
  providers::Post post(Op& op) override;
  std::size_t progress() override { return epochs_.progress(); }
  void peer_died(Route& route) override { epochs_.peer_died(route); }

 private:
  bool copy_at_once(const PreparedState& prepared, const RemoteRail& target, const Chunk& chunk);
  bool holds(const RemoteState& lease, const RemoteRail& target);
  void completed(providers::Posted& posted, const providers::Completion& completion) override;

  providers::Endpoint& endpoint_;
  const std::size_t rail_;
  const std::uint64_t chunk_limit_;
  const std::size_t most_chunks_;
  std::vector<providers::RmaPiece> pieces_;  // about to be posted
  EpochReader epochs_;
};

}  // namespace weft::core
