/// @file
/// Memory that is registered with an engine, and copies between it and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/grant.hpp>
#include <weft/place.hpp>

namespace weft {

struct Pair;

namespace core {
class FileCopyState;
class SegmentState;
}  // namespace core

/// A copy between a file and memory of one engine, begun by Segment::begin_copy_from(). From any
/// thread. Parts that the drive has taken go on by themselves. The rest begins when this or any
/// other copy on the drive is polled or waited for, and within 0.1 s while an engine is open.
///
/// io_uring completes I/O in the submitting thread's context: while that thread stays within one
/// system call that can't be interrupted, others may not hear of the end.
class WEFT_API FileCopy {
 public:
  FileCopy(FileCopy&&) noexcept;
  FileCopy& operator=(FileCopy&&) noexcept;
  /// Does not wait. Parts that have not begun are dropped. Both segments stay in use (see
  /// Segment::release()) until the drive has answered the others.
  ~FileCopy();

  /// Whether it has ended; wait() then returns the outcome at once. Does not wait.
  bool ended();
  /// How it ended, as of Segment::copy_from(). At the deadline `timed_out`, and it goes on. Not for
  /// callbacks.
  Result<void> wait(Deadline deadline);
  /// Drops the parts that have not begun; the copy ends as `cancelled` once the drive has answered
  /// the others. If all parts had begun, it ends as it would have anyway. Does not wait.
  void cancel();
  /// Whether nothing touches its bytes any more. False after its end if a drive did not answer in
  /// time (FileOptions::timeout). Does not wait.
  bool quiescent();
  /// As wait(), then until quiescent().
  Result<void> wait_quiescent(Deadline deadline);

 private:
  friend class Segment;
  explicit FileCopy(std::unique_ptr<core::FileCopyState> state);
  std::unique_ptr<core::FileCopyState> state_;
};

/// Memory that is registered with the engine's rails. Transfers name parts of it by offset.
///
/// The destructor never blocks. Memory that a transfer may still touch stays registered until the
/// last operation on it has ended. Adopted memory may be reused only after release() has returned
/// without an error.
class WEFT_API Segment {
 public:
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  /// Start of the memory in this process. Host memory only; null for device memory and files. Must
  /// not be written if the memory is Memory::read_only().
  std::byte* data() const noexcept;
  std::uint64_t size() const noexcept;
  Place place() const noexcept;
  /// The memfd behind Memory::shared or Memory::map, owned by the segment; -1 for other memory.
  int fd() const noexcept;

  /// Lets peers use `ranges` of this segment (all of it if empty) for `ttl` from now. When the time
  /// is over, peers stop by themselves. The memory is free only after revoke() or release(),
  /// because a peer may be frozen with operations in its NIC. Clocks of two machines are never
  /// compared.
  ///
  /// On NICs that pin memory, the first grant with such rights registers the extents that its
  /// ranges touch, with each rail that serves the segment, as far as the NIC has room; later ones
  /// share them (Keys). An extent is a part of the segment that the NIC takes in one registration:
  /// 4 GiB of small pages on EFA. Fails if no rail has room for one of them. Over other rails each
  /// grant has keys of its own.
  Result<Grant> grant(std::span<const Range> ranges, Rights rights, Nanoseconds ttl = unlimited,
                      Keys keys = Keys::automatic);
  /// Copies pieces of `source` (Pair::remote) into this segment (Pair::local), and waits: between a
  /// file and host memory of one engine, by the drive itself, without a rail or a peer. Memory
  /// that begins at a page, as the offset in the file does, is read and written by the drive
  /// itself.
  ///
  /// Fails with the file's path and the system's error; with `timed_out` at the deadline, or if the
  /// device does not answer (FileOptions::timeout). Then some of it may still be under way, and no
  /// more of it begins: both segments stay in use, as release() tells, until the device has
  /// answered. After any failure each byte of the pieces is old or new. Not for callbacks.
  Result<void> copy_from(const Segment& source, std::span<const Pair> pairs, Deadline deadline);
  /// Begins such a copy, and does not wait for it.
  Result<FileCopy> begin_copy_from(const Segment& source, std::span<const Pair> pairs);
  /// Ends all grants on the segment, waits until no peer and no transfer of this engine uses it,
  /// and unregisters it. Fails with `quarantined` if it is still in use at the deadline: the memory
  /// stays registered and must not be reused. May be called again.
  Result<void> release(Deadline deadline);

 private:
  friend class Engine;
  explicit Segment(std::shared_ptr<core::SegmentState> state);
  std::shared_ptr<core::SegmentState> state_;
};

}  // namespace weft
