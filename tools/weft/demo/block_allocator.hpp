// Hands out the blocks of a paged cache.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::tool {

/// Block ids of one request, for each group of the layout, in token order.
using BlockTable = std::vector<std::vector<std::uint32_t>>;

/// The free blocks of a cache, handed out in a shuffled order that depends on the seed alone.
/// Callers of several threads may wait for each other's blocks.
class BlockAllocator {
 public:
  /// Of `blocks[i]` blocks in group i.
  BlockAllocator(std::vector<std::uint32_t> blocks, std::uint64_t seed);

  /// `counts[i]` blocks of group i, all or none; waits for others to free theirs.
  Result<BlockTable> allocate(const std::vector<std::uint32_t>& counts, Deadline deadline,
                              const std::stop_token& stop = {});
  /// Gives blocks back. They come out again after those that are free already.
  void free(const BlockTable& table);
  /// The blocks that nobody has.
  BlockTable free_blocks() const;

 private:
  bool has(const std::vector<std::uint32_t>& counts) const;

  const std::vector<std::uint32_t> blocks_;
  mutable std::mutex mutex_;
  std::condition_variable_any freed_;
  BlockTable free_;
};

}  // namespace weft::tool
