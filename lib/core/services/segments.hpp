// The memory that an engine serves: which rails register it, and where it lies.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>
#include <weft/engine.hpp>

#include "base/sync.hpp"
#include "memory/segment_state.hpp"
#include "rail/rails.hpp"
#include "rail/workers.hpp"
#include "services/owner.hpp"
#include "transfer/piece_list.hpp"

namespace weft::core {

class Disk;

/// From any thread; close() by the one that closes the engine.
class Segments {
 public:
  Segments(const Config& config, const Owner& owner, const Rails& rails, Workers& workers)
      : config_(config), owner_(owner), rails_(rails), workers_(workers) {}

  /// May block for registration.
  Result<std::shared_ptr<SegmentState>> add(const Memory& memory);
  /// Registers for local use the extents that these pieces touch and no rail has registered yet.
  /// Fails if no rail has room for one of them. May block.
  Result<void> register_touched(SegmentState& segment, const PieceList& pieces);
  /// How many there are.
  std::uint64_t count() const;
  /// Those that are to be released, and that operations of this engine's still use.
  std::vector<std::shared_ptr<SegmentState>> quarantined() const;
  /// GPU memory that the rail can't register any more goes through its bounce-buffer transport from
  /// now on.
  void rail_opened(const Rail& rail);
  /// Closes all registrations: the rails are going.
  void close();

 private:
  Result<void> check_blocks(const Memory& memory) const;
  Result<Place> locate(const Memory& memory, const Allocation& allocation,
                       const Device& device) const;
  Result<Place> locate_on(const Device& gpu, const Memory& memory) const;
  Place locate_file(const Disk& disk, const Allocation& allocation) const;
  Result<void> prepare_staging(const Device& device, Rail& rail);
  Result<void> serve_by_rails(SegmentState& segment, std::uint64_t page_bytes);
  Result<void> let_serve(Rail& rail, SegmentState& segment);
  static Result<void> register_extent(Rail& rail, SegmentState& segment, std::size_t extent);

  const Config& config_;
  const Owner& owner_;
  const Rails& rails_;
  Workers& workers_;
  std::atomic<std::uint64_t> next_id_{1};
  struct Known {
    std::shared_ptr<LocalKeys> keys;
    std::shared_ptr<SharedKeys> shared;
    std::weak_ptr<SegmentState> segment;
  };
  std::atomic<bool> told_of_remapping_{false};
  mutable Mutex mutex_;
  // Those that are there, and some that went.
  std::vector<Known> all_ WEFT_GUARDED_BY(mutex_);
  std::size_t sweep_at_ WEFT_GUARDED_BY(mutex_) = 64;
};

}  // namespace weft::core
