/// @file
/// How a file is used as memory.
#pragma once

#include <cstdint>
#include <string>
#include <weft/deadline.hpp>

namespace weft {

/// Of Memory::file().
struct FileOptions {
  /// Past the page cache (O_DIRECT), in whole pages; the bytes before the first whole page and
  /// behind the last one go through the cache. Where the file system refuses it, all of it does:
  /// Place::kind says so, and so do Engine::explain() and the metrics.
  bool direct = true;
  /// As Memory::read_only().
  bool read_only = false;
  /// Makes the file (mode by umask), and makes it longer if it ends too early, with holes unless
  /// reserved. A descriptor's file grows only by what is written behind its end; reads there fail.
  bool create = false;
  /// A transfer that writes is done, and its signal raised, only once the device has the bytes and
  /// the file's size for good (RWF_DSYNC on each write: FUA or a flush of the drive's cache).
  bool durable = false;
  /// Limits on the operations, and their bytes, in flight at the drive. Files on one drive share
  /// the smallest limits. Priority::bulk may use a quarter of them, normal three quarters.
  unsigned queue_depth = 64;
  std::uint64_t bytes_in_flight = std::uint64_t{64} << 20;
  /// An operation that the drive has not answered in this time fails its transfer; the memory stays
  /// in use until the drive answers. The default is a guess: longer than a drive's error recovery.
  Nanoseconds timeout = std::chrono::seconds(30);
  /// Size in bytes, a power of two of at least 4096, of the blocks whose XXH3 is kept in a file of
  /// sums; 0: none. A read of a block that does not match its sum fails as `corrupt`. This detects
  /// blocks torn by a crash and, if the write was `durable`, blocks torn by a power cut.
  ///
  /// Offset and size of the memory, and of all pieces of it that are moved, are multiples of this.
  /// Config::bounce_buffer_bytes is as large on both sides, and so is a message of each rail. After
  /// a write that failed a block may have its old bytes and be `corrupt`. A block that was not
  /// written since the file of sums was made has no sum, and is not checked. One segment may write
  /// a block, or several may read it: Engine::add fails with `unavailable` for another, of any
  /// process.
  std::uint64_t checked_block = 0;
  /// The file of sums, made where there is none; empty: the file's path with ".xxh3" behind it.
  /// Descriptors and block devices need a path here.
  std::string sums;
  /// Engine::add reserves room for all bytes of the memory that the file has none for yet, and for
  /// their sums (fallocate). It fails with `unavailable` if the file system has too little room,
  /// and with `unsupported` if it can't reserve any. Not for read_only; without effect on block
  /// devices. A copy-on-write file system (btrfs) may still run out of room later.
  bool reserve = false;
};

}  // namespace weft
