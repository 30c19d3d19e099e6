// Copies between a file and memory of the same engine: no rail, no peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <weft/transfer.hpp>

#include "base/process.hpp"
#include "device/file/shared_queue.hpp"
#include "memory/segment_state.hpp"

namespace weft::core {

/// Behind the FileCopy handle. From any thread.
class FileCopyState {
 public:
  /// From `from` (Pair::remote) into `to` (Pair::local). One of them is a file, the other one host
  /// memory. Does not wait.
  static Result<std::unique_ptr<FileCopyState>> begin(const std::shared_ptr<SegmentState>& to,
                                                      const std::shared_ptr<SegmentState>& from,
                                                      std::span<const Pair> pairs);
  /// Drops what has not begun. Until the drive has answered the rest, both segments are in use.
  ~FileCopyState();

  bool ended() const;
  /// At the deadline it goes on.
  Result<void> wait(Deadline deadline) const { return wait(SharedQueue::Until::ended, deadline); }
  void cancel();
  bool quiescent() const;
  Result<void> wait_quiescent(Deadline deadline) const {
    return wait(SharedQueue::Until::over, deadline);
  }

 private:
  FileCopyState() = default;
  bool forked() const noexcept { return fork_generation_ != fork_generation(); }
  Result<void> wait(SharedQueue::Until until, Deadline deadline) const;

  const std::uint64_t fork_generation_ = fork_generation();
  std::string path_;
  std::shared_ptr<SharedQueue> queue_;
  SharedQueue::CopyingPtr copy_;  // null: there was nothing to copy
};

/// Waits until no such copy uses the segment any more, and lets none begin: where the engine is
/// gone, of which release() asks otherwise. `quarantined` at the deadline.
Result<void> wait_for_copies(SegmentState& segment, Deadline deadline);

/// begin() and wait().
Result<void> copy_by_file(const std::shared_ptr<SegmentState>& to,
                          const std::shared_ptr<SegmentState>& from, std::span<const Pair> pairs,
                          Deadline deadline);

}  // namespace weft::core
