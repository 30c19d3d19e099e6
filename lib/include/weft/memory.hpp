/// @file
/// Memory to make a segment of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <weft/export.hpp>
#include <weft/file_options.hpp>

namespace weft {

/// Describes memory. Engine::add allocates or maps it.
class WEFT_API Memory {
 public:
  /// Fresh zeroed pages that the segment owns. Fails with `out_of_memory` if the machine or the
  /// process's cgroups have too little memory left: using more would get the process killed. From
  /// 2 MiB on, asks the system for transparent huge pages (madvise): with them the kernel's copies
  /// over shm take half the time.
  static Memory own(std::size_t bytes);
  static constexpr std::size_t usual_huge_page = std::size_t{2} << 20;
  /// Fresh zeroed huge pages of `page_bytes` that the segment owns; `bytes` is rounded up to whole
  /// pages. Fails with `out_of_memory` if the system has too few of this size reserved
  /// (/sys/kernel/mm/hugepages) or the process's cgroups have too few left, and with `unsupported`
  /// if it has no pages of this size; there is no silent fallback.
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

}  // namespace weft
