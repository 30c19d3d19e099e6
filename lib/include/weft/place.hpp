/// @file
/// Bytes, ranges of them, and where memory lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

using Bytes = std::span<const std::byte>;
using Blob = std::vector<std::byte>;

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

}  // namespace weft
