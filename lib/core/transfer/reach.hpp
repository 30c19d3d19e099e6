// Which rails may carry which bytes of a transfer. Memory is registered in extents on both sides,
// and a rail may reach some of them and not others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lease/remote_state.hpp"
#include "memory/segment_state.hpp"
#include "peer/rail_set.hpp"
#include "transfer/cursor.hpp"

namespace weft::core {

/// A bit for each rail of a path, by its position in RailSet::rails(). Rails past the 64th have
/// none: they carry only what all rails carry.
using RailBits = std::uint64_t;

/// The extents on one side of a transfer.
struct SideExtents {
  /// How rails reach one.
  struct Reached {
    RailBits rails = 0;       // those that reach it
    bool all_rails = true;    // all of the path do, those past the 64th too
    bool all_targets = true;  // of each rail, all targets have a key for it
  };
  std::string memory;  // "local memory", for errors
  Extents extents;
  std::function<Reached(std::uint64_t)> reached;  // the extent that this offset lies in
};

/// As it was when the transfer was prepared: rails may lose memory later.
class Reach {
 public:
  /// All rails may carry all bytes, in chunks of any size.
  Reach() = default;

  /// Looks at the extents that the pieces touch, and at no others. Fails with `unavailable` if some
  /// bytes are reached by no rail. `rails`: those of the path.
  static Result<Reach> find(const PieceList& pieces, const std::vector<std::size_t>& rails,
                            const SideExtents& local, const SideExtents& remote);

  /// No chunk goes over one; null: there are none.
  const Seams* seams() const noexcept { return seams_.any() ? &seams_ : nullptr; }
  /// Each rail may carry all of the transfer, whichever of its targets is next.
  bool complete() const noexcept { return complete_; }
  /// Some rail may carry only a part of it.
  bool parted() const noexcept { return table_ != nullptr; }

  // Where it is parted:
  /// Those that may carry what begins at these offsets, as far as the pieces touch them.
  RailBits rails_for(std::uint64_t local, std::uint64_t remote) const noexcept {
    return table_->local[local / seams_.local] & table_->remote[remote / seams_.remote];
  }
  /// 0: a rail that has no bit.
  RailBits bit_of(std::size_t rail) const noexcept;
  /// The different values that rails_for() has. Those with the fewest rails come first.
  const std::vector<RailBits>& parts() const noexcept { return table_->parts; }

 private:
  struct Table {
    std::vector<std::size_t> rails;
    std::vector<RailBits> local, remote;  // by extent; 0 where no piece touches it
    std::vector<RailBits> parts;
  };

  Seams seams_;
  bool complete_ = true;
  std::shared_ptr<const Table> table_;  // null: all rails may carry all
};

/// Between these memories, over that path.
Result<Reach> find_reach(const PieceList& pieces, const RailSet& path, const SegmentState& local,
                         const RemoteState& remote);

}  // namespace weft::core
