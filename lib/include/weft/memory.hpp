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

namespace core {
class SegmentState;
class GrantState;
class RemoteState;
}  // namespace core

/// Who owns the bytes: the CPU's memory, or a device's.
enum class MemoryKind : std::uint8_t { host, device };

/// Where memory lies.
struct Place {
  MemoryKind kind = MemoryKind::host;
  int numa_node = -1;  ///< -1 where it can't be told, or where pages lie on several nodes.
  int device = -1;     ///< The GPU that it is of or used with, in Topology::gpus; -1: none.
};

/// A piece of a segment, in bytes from the segment's start.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Memory to make a segment of: a recipe, evaluated by Engine::add.
class WEFT_API Memory {
 public:
  /// Fresh zeroed pages that the segment owns. From 2 MiB on the system is asked for transparent
  /// huge pages (madvise), which it gives as they are first touched, if it gives any: the kernel's
  /// copies over shm take half the time with them.
  static Memory own(std::size_t bytes);
  /// Fresh zeroed huge pages (2 MiB) that the segment owns; `bytes` is rounded up to whole pages.
  /// Fails with out_of_memory where the system has none reserved: there is no silent fallback.
  static Memory huge(std::size_t bytes);
  /// Fresh zeroed pages behind a memfd, which other processes may map (Segment::fd). It can't be
  /// made smaller.
  ///
  /// The fastest memory to share with peers on one host: over rails that can
  /// (Capability::maps_memory) a peer that was granted some of it maps the file, and copies to and
  /// from it without the kernel. It keeps that mapping, and with it the pages, for about two
  /// seconds after the last grant has ended.
  static Memory shared(std::size_t bytes);
  /// Maps `bytes` of a file descriptor that supports mmap, from a page-aligned `offset`. The
  /// descriptor is duplicated; the caller keeps its own. Peers map a memfd as they do that of
  /// shared(), if it is sealed by F_SEAL_SHRINK and not of huge pages.
  static Memory map(int fd, std::uint64_t offset, std::size_t bytes);
  /// Memory of the caller's, which must stay mapped until the segment is released (not merely
  /// destroyed: see Segment).
  ///
  /// May be a GPU's: what cudaMalloc, cuMemAlloc, cudaMallocManaged or a framework gave. The CUDA
  /// driver that the process has loaded is asked; no CUDA is needed where there is none. NICs that
  /// can (Capability::device_memory) read and write it themselves, and copies of the application's
  /// that are synchronous really are from then on (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). Memory that
  /// no NIC reaches is staged: the bounce-buffer transport of each rail copies it through pinned
  /// bounce buffers, by streams of its own in the GPU's primary context, without regard to the
  /// application's streams: kernels and copies that fill it must have ended (cudaMemcpy from
  /// pageable memory may return before), or TransferOptions::after_cuda_event says when they have.
  static Memory adopt(void* address, std::size_t bytes);

  /// Memory in this process that is used together with a GPU, such as a staging buffer: it is moved
  /// by the NICs that serve the GPU at this PCI address ("0000:53:00.0") and by no others, and
  /// fresh pages come from the GPU's node. Adding it fails with `not_found` if there is no such
  /// GPU.
  Memory near_gpu(std::string pci) const {
    Memory near = *this;
    near.gpu_ = std::move(pci);
    return near;
  }

  enum class Source : std::uint8_t { own, huge, shared, map, adopt };
  Source source() const noexcept { return source_; }
  std::size_t bytes() const noexcept { return bytes_; }
  void* address() const noexcept { return address_; }
  int fd() const noexcept { return fd_; }
  std::uint64_t offset() const noexcept { return offset_; }
  const std::string& gpu() const noexcept { return gpu_; }  ///< Empty: none.

 private:
  Memory(Source source, std::size_t bytes) : source_(source), bytes_(bytes) {}
  Source source_;
  std::size_t bytes_;
  void* address_ = nullptr;
  int fd_ = -1;
  std::uint64_t offset_ = 0;
  std::string gpu_;
};

/// What a peer may do with granted memory.
enum class Rights : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// How a grant ended.
enum class Revoked : std::uint8_t {
  quiescent,  ///< The memory may be reused: no byte that a peer sent can come any more, and what a
              ///< peer reads from now on is not accepted there.
  quarantined,  ///< A peer may still write: the memory stays registered and out of use.
};

/// The right of peers to read or write some ranges of a segment, under a lease: it can be used
/// until it is revoked, its time is over, or its segment is released. Destroying the handle ends
/// nothing.
///
/// A read under a grant that has ended fails as `stale`, even if bytes came: the reader looks,
/// after they came, whether the lease still held. A write is different: who writes has to stop
/// before the memory can be used for something else, so that ending a grant to write is a
/// handshake.
class WEFT_API Grant {
 public:
  Grant(Grant&&) noexcept;
  Grant& operator=(Grant&&) noexcept;
  ~Grant();

  /// The grant in serialised form, some hundred bytes, to be carried to a peer by any channel and
  /// given to Engine::import there. It holds no pointers; whoever has it can use it.
  Blob blob() const;
  /// Identifies the grant within its engine.
  std::uint64_t lease_id() const noexcept;
  /// Ends the grant. New transfers under it are refused, those under way end as `stale`, and of
  /// their chunks none goes out any more. If peers may write, it waits until each that holds the
  /// grant has drained what it had posted, and confirmed.
  ///
  /// `quarantined` if one does not by the deadline, or has gone without a word and can't be kept
  /// out by closing the grant's keys (Capability::fence): it may be frozen, with operations in its
  /// NIC. May be called again, to wait for longer or to learn that the last one has confirmed. Not
  /// from callbacks, like fence() and Segment::release().
  Result<Revoked> revoke(Deadline deadline);
  /// revoke() without waiting for holders: closes the grant's keys, so that whatever peers have
  /// posted under it is refused on arrival. Their operations end with errors of the fabric's, and
  /// on some fabrics their connection breaks. `quarantined` if a peer is within a copy (over shm)
  /// that does not end in half a second.
  ///
  /// `reach` is how far it may go. Where a rail can't cut off one grant alone (Capability::fence)
  /// it is `unsupported`, unless `reach` is FenceScope::rail: then each such rail of the grant's is
  /// closed and opened again, as by Engine::reopen(), which hurts bystanders.
  Result<Revoked> fence(Deadline deadline, FenceScope reach = FenceScope::grant);

 private:
  friend class Segment;
  friend class Engine;
  explicit Grant(std::shared_ptr<core::GrantState> state);
  std::shared_ptr<core::GrantState> state_;
};

/// Memory registered with the engine's rails. Transfers name parts of it by offset.
///
/// The destructor never blocks and never frees memory that a transfer may still touch: such memory
/// stays registered until the last operation on it has ended. Adopted memory can be reused safely
/// only after release() has returned without an error.
class WEFT_API Segment {
 public:
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();

  /// Start of the memory in this process. Host memory only; null for device memory.
  std::byte* data() const noexcept;
  std::uint64_t size() const noexcept;
  Place place() const noexcept;
  /// The memfd behind Memory::shared or Memory::map, owned by the segment; -1 for other memory.
  int fd() const noexcept;

  /// Lets peers use `ranges` of this segment (all of it when empty) for `ttl` from now. When the
  /// time is over peers stop by themselves, but the memory is free only after revoke() or
  /// release(): a peer may be frozen, with operations in its NIC. The clocks of two machines are
  /// not compared.
  Result<Grant> grant(std::span<const Range> ranges, Rights rights, Nanoseconds ttl = unlimited);
  /// Ends all grants on the segment, waits until no peer and no transfer of this engine uses it any
  /// more, and unregisters it. `quarantined` if that is not so by the deadline: the memory stays
  /// registered and must not be reused. May be called again.
  Result<void> release(Deadline deadline);

 private:
  friend class Engine;
  explicit Segment(std::shared_ptr<core::SegmentState> state);
  std::shared_ptr<core::SegmentState> state_;
};

/// A peer's grant, imported: memory on the other side that transfers may name by offset.
/// Cheap to copy.
class WEFT_API Remote {
 public:
  Remote(const Remote&) = default;  // moving copies too: a handle is never empty
  Remote& operator=(const Remote&) = default;

  /// Name of the engine that owns the memory.
  const std::string& peer() const noexcept;
  /// Size of the peer's segment, in bytes. Offsets count from its start.
  std::uint64_t segment_size() const noexcept;
  /// What was granted, sorted by offset.
  std::span<const Range> ranges() const noexcept;
  Rights rights() const noexcept;
  Place place() const noexcept;

 private:
  friend class Engine;
  explicit Remote(std::shared_ptr<core::RemoteState> state);
  std::shared_ptr<core::RemoteState> state_;
};

}  // namespace weft
