// The paths that transfers take: which rails serve two memories, what happens to the bytes on the
// way, and whether policies allow it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "lease/remote_state.hpp"
#include "path/describe.hpp"
#include "peer/rail_set.hpp"
#include "rail/rails.hpp"
#include "services/owner.hpp"
#include "transfer/prepared.hpp"

namespace weft::core {

/// From any thread.
class Paths {
 public:
  /// Which rails serve two memories, by index on either side.
  struct RailsBetween {
    PeerState* peer = nullptr;
    Place local, remote;
    RailSets::Rails ours, theirs;  // not empty
    Lending lending;
    Mapping mapping;
    // Between segments: whether the NICs of all of them reach the memory of their side by
    // themselves, and where one side has none that does, why.
    bool seen = false, direct = false;
    std::string why_local_staged = {}, why_remote_staged = {};
  };

  Paths(const Config& config, const Owner& owner, const Introduction& self, const Rails& rails);

  Result<RailsBetween> rails_for(const SegmentState& local, const RemoteState& remote) const;
  Result<std::shared_ptr<RailSet>> rails_between(const RailsBetween& rails) const;
  static bool between_gpus(const SegmentState& local, const RemoteState& remote);
  Result<std::byte*> borrow(const SegmentState& local, const RemoteState& remote) const;

  /// How a transfer between them would go.
  Result<Path> explain(const SegmentState& local, const RemoteState& remote, Direction direction,
                       const TransferOptions& options) const;
  /// The same between memory that is not there yet.
  Result<Path> explain_places(const Place& local, const std::shared_ptr<PeerState>& peer,
                              const Place& remote, Direction direction,
                              const TransferOptions& options) const;
  /// How it goes by that transport; found out once.
  const KnownPath& known(const PreparedState& prepared, TransportKind asked) const;
  TransportKind transport_asked(const TransferOptions& options) const;
  /// Whether the engine has policies that refuse any path.
  bool has_policies() const noexcept { return has_policies_; }
  /// Whether those, and the transfer's, allow it.
  Result<void> check_policies(const PreparedState& prepared, const TransferOptions& options) const;

 private:
  Mapping mapping_of(const RailsBetween& rails, const SegmentState& local,
                     const RemoteState& remote) const;
  Result<Path> describe(const RailsBetween& rails, Direction direction, TransportKind asked) const;
  std::vector<std::string> not_had_before(const Capability& record) const;
  std::string refusal(
      const Path& path, const PeerState& peer, const TransferOptions& options,
      std::uint64_t smallest_piece = std::numeric_limits<std::uint64_t>::max()) const;

  const Config& config_;
  const bool has_policies_;
  const Owner& owner_;
  const Introduction& self_;
  const Rails& rails_;
};

}  // namespace weft::core
