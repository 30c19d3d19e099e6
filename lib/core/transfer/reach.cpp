#include "transfer/reach.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace weft::core {
namespace {

constexpr std::size_t most_bits = std::numeric_limits<RailBits>::digits;
constexpr std::uint64_t whole_runs = std::numeric_limits<std::uint64_t>::max();

RailBits bit_at(std::size_t position) {
  return position < most_bits ? RailBits{1} << position : 0;
}

/// One side, of which each extent is looked at once, when the pieces come to it.
class Looked {
 public:
  explicit Looked(const SideExtents& side) : side_(side), rails_(side.extents.count()) {}

  RailBits at(std::uint64_t offset) {
    RailBits& rails = rails_[side_.extents.of(offset)];
    if (rails != 0) return rails;
    const SideExtents::Reached reached = side_.reached(offset);
    all_rails_ = all_rails_ && reached.all_rails;
    all_targets_ = all_targets_ && reached.all_targets;
    return rails = reached.rails;
  }
  bool all_rails() const noexcept { return all_rails_; }
  bool all_targets() const noexcept { return all_targets_; }
  std::vector<RailBits> take() { return std::move(rails_); }

  /// The extent, in words.
  std::string bytes_at(std::uint64_t offset) const {
    const Range extent = side_.extents.range(side_.extents.of(offset));
    return fmt::format("bytes {} to {} of the {}", extent.offset, extent.offset + extent.length,
                       side_.memory);
  }

 private:
  const SideExtents& side_;
  std::vector<RailBits> rails_;  // by extent; 0: not looked at
  bool all_rails_ = true, all_targets_ = true;
};

Error not_reached(const Looked& local, const Looked& remote, const Chunk& chunk, RailBits ours,
                  RailBits theirs) {
  std::string which;
  if (ours == 0)
    which = local.bytes_at(chunk.local);
  else if (theirs == 0)
    which = remote.bytes_at(chunk.remote);
  else
    which =
        fmt::format("both {} and {}", local.bytes_at(chunk.local), remote.bytes_at(chunk.remote));
  return Error(Code::unavailable, fmt::format("no rail reaches {}", which));
}

void note(std::vector<RailBits>& parts, RailBits rails) {
  if (std::find(parts.begin(), parts.end(), rails) == parts.end()) parts.push_back(rails);
}

/// A side that lies in one extent has no seam.
std::uint64_t seam_of(const Extents& extents) {
  return extents.count() == 1 ? no_seams : extents.bytes();
}

Extents extents_of(const RemoteState& remote) {
  return Extents(remote.description().segment_size, remote.extent_bytes());
}

SideExtents extents_of(const SegmentState& local, const RailSet& path) {
  const auto reached = [&](std::uint64_t offset) {
    SideExtents::Reached reached;
    for (std::size_t i = 0; i < path.rails().size(); ++i) {
      const bool reaches = local.reaches(path.rails()[i], offset);
      reached.all_rails = reached.all_rails && reaches;
      if (reaches) reached.rails |= bit_at(i);
    }
    return reached;
  };
  return {"local memory", local.keys()->extents(), reached};
}

SideExtents extents_of(const RemoteState& remote, const RailSet& path) {
  const auto reached = [&](std::uint64_t offset) {
    SideExtents::Reached reached;
    for (std::size_t i = 0; i < path.rails().size(); ++i) {
      const Targets& targets = path.of(path.rails()[i])->targets;
      std::size_t reaching = 0;
      for (std::size_t target = 0; target < targets.size(); ++target)
        if (remote.reachable_on(targets[target].index, offset)) ++reaching;
      reached.all_rails = reached.all_rails && reaching > 0;
      reached.all_targets = reached.all_targets && reaching == targets.size();
      if (reaching > 0) reached.rails |= bit_at(i);
    }
    return reached;
  };
  return {"peer's memory", extents_of(remote), reached};
}

}  // namespace

Result<Reach> Reach::find(const PieceList& pieces, const std::vector<std::size_t>& rails,
                          const SideExtents& local, const SideExtents& remote) {
  Reach reach;
  reach.seams_ = {seam_of(local.extents), seam_of(remote.extents)};
  // The path has no rail that does not reach what lies in one extent.
  if (!reach.seams_.any()) return reach;
  Looked ours(local), theirs(remote);
  std::vector<RailBits> parts;
  for (Cursor walk(pieces, {}, &reach.seams_); !walk.exhausted();) {
    const auto chunk = walk.next(whole_runs);
    const RailBits by_us = ours.at(chunk->local), by_them = theirs.at(chunk->remote);
    if ((by_us & by_them) == 0) return fail(not_reached(ours, theirs, *chunk, by_us, by_them));
    note(parts, by_us & by_them);
  }
  const bool all_rails = ours.all_rails() && theirs.all_rails();
  reach.complete_ = all_rails && theirs.all_targets();
  if (all_rails) return reach;
  std::stable_sort(parts.begin(), parts.end(),
                   [](RailBits a, RailBits b) { return std::popcount(a) < std::popcount(b); });
  reach.table_ =
      std::make_shared<Table>(Table{rails, ours.take(), theirs.take(), std::move(parts)});
  return reach;
}

RailBits Reach::bit_of(std::size_t rail) const noexcept {
  const auto& rails = table_->rails;
  const auto found = std::find(rails.begin(), rails.end(), rail);
  return found == rails.end() ? 0 : bit_at(static_cast<std::size_t>(found - rails.begin()));
}

Result<Reach> find_reach(const PieceList& pieces, const RailSet& path, const SegmentState& local,
                         const RemoteState& remote) {
  const Seams seams{seam_of(local.keys()->extents()), seam_of(extents_of(remote))};
  if (!seams.any()) return Reach();  // without a list of what is looked at: it is most often so
  return Reach::find(pieces, path.rails(), extents_of(local, path), extents_of(remote, path));
}

}  // namespace weft::core
