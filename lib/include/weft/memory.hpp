/// @file
/// Registered local memory, and the rights that other engines get to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <weft/capability.hpp>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft {

using Bytes = std::span<const std::byte>;
using Blob = std::vector<std::byte>;

struct Pair;

namespace core {
class FileCopyState;
class SegmentState;
class GrantState;
class RemoteState;
}  // namespace core

/// The CPU's memory, a GPU's, or a file (Memory::file).
enum class MemoryKind : std::uint8_t {
  host,
  device,
  file,           ///< The drive reads and writes by itself (direct I/O).
  buffered_file,  ///< The kernel copies between its page cache and Weft's buffers.
};

/// Whether it is one of the two kinds of files.
constexpr bool is_file(MemoryKind kind) noexcept {
  return kind == MemoryKind::file || kind == MemoryKind::buffered_file;
}

/// Where memory lies.
struct Place {
  MemoryKind kind = MemoryKind::host;
  int numa_node = -1;  ///< -1: unknown, or pages lie on several nodes.
  int device = -1;     ///< Index in Topology::gpus of the GPU that owns or uses it; -1: none.
  /// Index in Topology::drives of the drive that a file lies on. -1: none that is in the topology,
  /// or several.
  int drive = -1;
};

/// A piece of a segment, in bytes from the segment's start.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// How a file is used as memory.
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

/// Describes memory to make a segment of. Engine::add allocates or maps it.
class WEFT_API Memory {
 public:
  /// Fresh zeroed pages that the segment owns. Fails with `out_of_memory` if the machine does not
  /// have as many, or the process's control groups have not as many left: to use them would have
  /// the process killed. From 2 MiB on, asks the system for transparent huge pages (madvise): with
  /// them the kernel's copies over shm take half the time.
  static Memory own(std::size_t bytes);
  static constexpr std::size_t usual_huge_page = std::size_t{2} << 20;
  /// Fresh zeroed huge pages of `page_bytes` that the segment owns; `bytes` is rounded up to whole
  /// pages. Fails with `out_of_memory` if the system has not as many of this size reserved
  /// (/sys/kernel/mm/hugepages), or the process's control groups have not as many left, and with
  /// `unsupported` if it has no pages of this size; there is no silent fallback.
  static Memory huge(std::size_t bytes, std::size_t page_bytes = usual_huge_page);
  /// Fresh zeroed pages behind a memfd that can't shrink; other processes may map it (Segment::fd).
  /// Fails as own() does.
  ///
  /// The fastest memory to share with peers on one host. Over rails with Capability::maps_memory a
  /// peer that holds a grant maps the file and copies without the kernel. It keeps the mapping, and
  /// with it the pages, for about two seconds after its last grant has ended.
  static Memory shared(std::size_t bytes);
  /// Maps `bytes` of a file descriptor that supports mmap, from a page-aligned `offset`. Duplicates
  /// the descriptor; the caller keeps its own. Peers map a memfd as with shared(), if it is sealed
  /// by F_SEAL_SHRINK and has no huge pages. If the descriptor was opened for reading only, the
  /// segment is read_only().
  static Memory map(int fd, std::uint64_t offset, std::size_t bytes);
  /// Memory of the caller. It must stay mapped until the segment is released; destroying the
  /// segment is not enough (see Segment).
  ///
  /// It may be GPU memory from cudaMalloc, cuMemAlloc, cudaMallocManaged or a framework. Weft asks
  /// the CUDA driver that the process has loaded.
  /// - NICs with Capability::device_memory read and write it themselves. From then on synchronous
  ///   copies of that memory are really synchronous (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS).
  /// - Otherwise it is staged: each rail copies it through pinned bounce buffers, on streams of its
  ///   own in the GPU's primary context. These streams don't wait for the application's. Kernels
  ///   and copies that fill the memory must have ended before submit() (cudaMemcpy from pageable
  ///   memory may return earlier), or TransferOptions::after_gpu_event tells when they have.
  ///
  /// `owner` is kept until nothing touches the memory any more: after the segment and its grants
  /// have ended, and never while the memory is quarantined. It is destroyed on any thread, maybe
  /// one of the engine's: that must be short and must not wait. With it the program may forget the
  /// memory.
  static Memory adopt(void* address, std::size_t bytes, std::shared_ptr<void> owner = {});
  /// `bytes` of a file or a block device, from `offset` on; 0: up to its end. Peers read and write
  /// it under grants as they do memory, through bounce buffers of the rails; this engine also by
  /// Segment::copy_from(). The file is never mapped: if it is cut off, or its drive fails or hangs,
  /// the transfers that touch it fail with its path and the error of the system, and nothing else.
  /// Segments may share a file; their writes are not ordered.
  static Memory file(std::string path, std::uint64_t offset, std::size_t bytes,
                     const FileOptions& options = {});
  /// Opens the file of a descriptor anew where the system lets it, else duplicates the descriptor;
  /// the caller keeps its own. One that was opened for reading only makes a read-only segment.
  static Memory file(int fd, std::uint64_t offset, std::size_t bytes,
                     const FileOptions& options = {});

  /// For host memory that is used together with a GPU, such as a staging buffer. Only NICs that
  /// serve the GPU at this PCI address ("0000:53:00.0") move it, and fresh pages come from the
  /// GPU's NUMA node. Engine::add fails with `not_found` if there is no such GPU.
  Memory near_gpu(std::string pci) const {
    Memory near = *this;
    near.gpu_ = std::move(pci);
    return near;
  }

  /// For mapped or adopted memory, or a file, that may be read and not written: pages without
  /// PROT_WRITE, or a file that must stay as it is. Such a segment is a source: peers may read it,
  /// and this engine may write it to peers. To read into it, and to grant Rights::write, fails with
  /// `permission_denied`. Engine::add fails with `invalid_argument` for fresh pages.
  Memory read_only() const {
    Memory source = *this;
    source.read_only_ = true;
    return source;
  }

  enum class Source : std::uint8_t { own, huge, shared, map, adopt, file };
  Source source() const noexcept { return source_; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t page_bytes() const noexcept { return page_bytes_; }  ///< Of huge().
  void* address() const noexcept { return address_; }
  const std::shared_ptr<void>& owner() const noexcept { return owner_; }  ///< Null: the caller.
  int fd() const noexcept { return fd_; }
  std::uint64_t offset() const noexcept { return offset_; }
  const std::string& gpu() const noexcept { return gpu_; }  ///< Empty: none.
  bool is_read_only() const noexcept { return read_only_; }
  const std::string& path() const noexcept { return path_; }  ///< Empty: the file is fd()'s.
  const FileOptions& file_options() const noexcept { return file_; }

 private:
  Memory(Source source, std::size_t bytes) : source_(source), bytes_(bytes) {}
  Source source_;
  std::size_t bytes_;
  std::size_t page_bytes_ = usual_huge_page;
  void* address_ = nullptr;
  std::shared_ptr<void> owner_;
  int fd_ = -1;
  std::uint64_t offset_ = 0;
  std::string gpu_;
  bool read_only_ = false;
  std::string path_;
  FileOptions file_;
};

/// What a peer may do with granted memory.
enum class Rights : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Whether a grant shares its keys with other grants of the segment that have the same rights.
enum class Keys : std::uint8_t {
  automatic,  ///< Shared where registering is slow (Capability::pins_memory): a grant then takes
              ///< microseconds once the memory is registered. With such a key, a peer that breaks
              ///< the protocol can reach anything in the same extent.
  own,        ///< Never shared: keys cover the first to the last granted byte of an extent and are
              ///< closed with the grant. Registers with each NIC, which takes time and pins pages.
};

/// How a grant ended.
enum class Revoked : std::uint8_t {
  quiescent,  ///< The memory may be reused: no byte of a peer can arrive any more, and what a peer
              ///< reads from now on is not accepted.
  quarantined,  ///< A peer may still write. The memory stays registered; don't reuse it.
};

/// A lease: the right of peers to read or write some ranges of a segment. It holds until it is
/// revoked, its time is over, or its segment is released. Destroying the handle does not end it.
///
/// A read under a grant that has ended fails as `stale`, even if bytes came: after they came, the
/// reader checks that the lease still held. A write is different: every writer has to stop before
/// the memory can be used for something else. So the end of a write grant is a handshake.
class WEFT_API Grant {
 public:
  Grant(Grant&&) noexcept;
  Grant& operator=(Grant&&) noexcept;
  ~Grant();

  /// The grant in serialised form, some hundred bytes, and 40 for each rail and extent. Any channel
  /// may carry it to a peer, where Engine::import reads it. It holds no pointers. Every process
  /// that has it can use it.
  Blob blob() const;
  /// Identifies the grant within its engine.
  std::uint64_t lease_id() const noexcept;
  /// The grant holds for `ttl` from now on, or for longer if it does already. Keys, imports and
  /// Prepared lists stay good. Holders are told; one that does not hear it in time stops at the end
  /// that it knows, and its transfers end as `stale`: renew while more is left than a message
  /// takes. Fails with `stale` if the grant holds no more. From any thread; does not wait.
  Result<void> renew(Nanoseconds ttl);
  /// Ends the grant. New transfers under it are refused. Those under way end as `stale`, and send
  /// no further chunks. If peers may write, waits until each holder has drained its operations and
  /// confirmed.
  ///
  /// Returns `quarantined` if a holder does not confirm by the deadline, or is gone without a word
  /// and can't be kept out by closing the grant's keys (Capability::fence): it may be frozen, with
  /// operations in its NIC. May be called again, to wait longer or to learn that the last holder
  /// has confirmed. Not for callbacks; neither are fence() and Segment::release().
  Result<Revoked> revoke(Deadline deadline);
  /// revoke() without waiting for holders: closes the grant's keys, so that operations of peers are
  /// refused on arrival. These end with errors of the fabric; on some fabrics the connection
  /// breaks. Keys that it shares with grants that hold are replaced: their holders get new ones,
  /// and are waited for until the deadline; what is still out by the old ones then is lost. Returns
  /// `quarantined` if a peer is within a copy (over shm) that takes longer than half a second.
  ///
  /// `reach` is how far it may go. A rail that can't cut off one grant alone (Capability::fence)
  /// fails with `unsupported`, unless `reach` is FenceScope::rail. Then each such rail is closed
  /// and opened again, as by Engine::reopen(), which hurts other peers on it.
  Result<Revoked> fence(Deadline deadline, FenceScope reach = FenceScope::grant);
  /// After revoke() or fence() returned `quarantined`: an error of that code that says why, as that
  /// a holder is gone. From any thread; does not wait.
  Error why_quarantined() const;

 private:
  friend class Segment;
  friend class Engine;
  explicit Grant(std::shared_ptr<core::GrantState> state);
  std::shared_ptr<core::GrantState> state_;
};

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

/// A peer's grant, imported: memory of the peer. Transfers name parts of it by offset. Cheap to
/// copy.
class WEFT_API Remote {
 public:
  Remote(const Remote&) = default;  // moving copies too: a handle is never empty
  Remote& operator=(const Remote&) = default;

  /// Name of the engine that owns the memory.
  const std::string& peer() const noexcept;
  /// Size of the peer's segment, in bytes. Offsets count from its start.
  std::uint64_t segment_size() const noexcept;
  /// The granted ranges, sorted by offset.
  std::span<const Range> ranges() const noexcept;
  Rights rights() const noexcept;
  Place place() const noexcept;

 private:
  friend class Engine;
  explicit Remote(std::shared_ptr<core::RemoteState> state);
  std::shared_ptr<core::RemoteState> state_;
};

}  // namespace weft
