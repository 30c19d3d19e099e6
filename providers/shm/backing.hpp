// The file that registered memory lies in, where processes around may map it too.
#pragma once

#include <cstdint>

#include "providers/extent.hpp"
#include "providers/shm/descriptor.hpp"

namespace weft::providers::shm {

/// Why memory is not mapped by peers.
enum class Unmappable : std::uint32_t {
  no,          // it can be
  no_file,     // it is of one process alone
  no_memfd,    // such a file may lie on a disk, or stand for a device
  may_shrink,  // a process that touches pages behind the end of a file is killed
  huge_pages,  // likewise, where the system has none left
};
/// As a part of a sentence.
const char* to_text(Unmappable why) noexcept;

/// An entry's description of it.
struct Backing {
  std::int32_t descriptor;  // in the owner's process
  Unmappable why_not;
  std::uint64_t inode;   // of the file; the number of the descriptor may be used again
  std::uint64_t offset;  // of the entry's first byte in it
};

/// Whether a file may be mapped without fear of its owner.
Unmappable check_file(int descriptor) noexcept;

/// The owner's side. The reason against an application's file is logged, once.
Backing backing_of(const FilePlace& file);

}  // namespace weft::providers::shm
