// One-sided transport: RMA straight between the two segments.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "transfer/inline_copied.hpp"
#include "transport/lease_reader.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class Rma final : public Transport, private providers::CompletionHandler {
 public:
  Rma(providers::Endpoint& endpoint, std::size_t rail, std::uint64_t chunk_limit)
      : endpoint_(endpoint),
        rail_(rail),
        chunk_limit_(chunk_limit),
        most_chunks_(endpoint.capability().rma_pieces),
        shared_doorbell_(endpoint.capability().shared_doorbell),
        keys_fence_(endpoint.capability().fence == FenceScope::grant),
        lease_reader_(endpoint, rail, [this](Op& op, const providers::Completion& completion) {
          sink().chunk_ended(op, completion);
        }) {}

  /// Inline copy of the pieces by the calling thread, which may be any; proves what it has read
  /// unless that is `trusted`. Stops at the first piece that can't be copied now, and soon after
  /// `until`: the rest has to be posted.
  InlineCopied copy_inline(const PreparedState& prepared, const Picks& picks, bool trusted,
                           Clock::time_point until);
  /// Inline copy of one chunk of a transfer that the rail's thread carries too. False: it has to be
  /// posted.
  bool copy_inline(const PreparedState& prepared, const Chunk& chunk);

  /// May block; before the first peer is met.
  Result<void> prepare() { return lease_reader_.prepare(); }

  std::uint64_t chunk_limit(const Route&) const override { return chunk_limit_; }
  std::size_t most_chunks(const Route&) const override { return most_chunks_; }
  std::size_t room(const Route&) const override { return std::numeric_limits<std::size_t>::max(); }
  providers::Post post(Op& op) override;
  providers::BatchPost post_all(std::span<Op* const> ops) override;
  std::size_t progress() override { return lease_reader_.progress(); }
  void peer_died(Route& route) override { lease_reader_.peer_died(route); }

 private:
  struct Aim {
    const RemoteRail& target;
    providers::FabricAddress address;
  };
  std::optional<Aim> aim(const PreparedState& prepared, const Op& op) const;
  bool reaches(const PreparedState& prepared, const RemoteRail& target, const Op& op) const;
  providers::RmaPiece piece(const PreparedState& prepared, const Aim& aim,
                            const Chunk& chunk) const;
  const RemoteRail* only_target(const PreparedState& prepared) const;
  bool copy_inline(const PreparedState& prepared, const RemoteRail& target, const Chunk& chunk,
                   providers::CopyBy by);
  bool holds(const RemoteState& lease, const RemoteRail& target);
  void completed(providers::Posted& posted, const providers::Completion& completion) override;

  providers::Endpoint& endpoint_;
  const std::size_t rail_;
  const std::uint64_t chunk_limit_;
  const std::size_t most_chunks_;
  const bool shared_doorbell_, keys_fence_;
  std::vector<providers::RmaPiece> pieces_;  // about to be posted
  std::vector<providers::RmaPost> posts_;    // likewise, together
  LeaseReader lease_reader_;
};

}  // namespace weft::core
