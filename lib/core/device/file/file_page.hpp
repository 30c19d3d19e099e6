// The unit of direct I/O, and memory for it.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace weft::core {

/// Every drive and file system takes direct I/O in multiples of this, or is used buffered. The page
/// cache has such pages as well: no page is ever written in both ways.
inline constexpr std::size_t file_page = 4096;

struct FreeFilePages {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using FilePages = std::unique_ptr<std::byte[], FreeFilePages>;

/// Null if there is no memory. `bytes` are whole pages.
inline FilePages make_file_pages(std::size_t bytes) {
  return FilePages(static_cast<std::byte*>(std::aligned_alloc(file_page, bytes)));
}

}  // namespace weft::core
