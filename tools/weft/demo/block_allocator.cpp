#include "demo/block_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weft::tool {

BlockAllocator::BlockAllocator(std::size_t groups, std::uint32_t blocks, std::uint64_t seed)
    : blocks_(blocks), free_(groups) {
  std::mt19937_64 random(seed);
  for (auto& list : free_) {
    list.resize(blocks);
    std::iota(list.begin(), list.end(), 0U);
    std::shuffle(list.begin(), list.end(), random);
  }
}

bool BlockAllocator::has(std::uint32_t count) const {
  return std::all_of(free_.begin(), free_.end(),
                     [&](const auto& list) { return list.size() >= count; });
}

Result<BlockTable> BlockAllocator::allocate(std::uint32_t count, Deadline deadline,
                                            const std::stop_token& stop) {
  if (count > blocks_)
    return fail(Code::out_of_memory,
                fmt::format("a request needs {} blocks and the cache has {} (see --blocks)", count,
                            blocks_));
  std::unique_lock lock(mutex_);
  const bool free = freed_.wait_until(lock, stop, deadline.when(), [&] { return has(count); });
  if (!free && stop.stop_requested()) return fail(Code::cancelled, "the run ends early");
  if (!free) return fail(Code::timed_out, fmt::format("no {} blocks became free in time", count));
  BlockTable table;
  for (auto& list : free_) {
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(count);
    table.emplace_back(list.begin(), end);
    list.erase(list.begin(), end);
  }
  return table;
}

void BlockAllocator::free(const BlockTable& table) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t group = 0; group < table.size(); ++group)
      free_[group].insert(free_[group].end(), table[group].begin(), table[group].end());
  }
  freed_.notify_all();
}

BlockTable BlockAllocator::free_blocks() const {
  const std::lock_guard lock(mutex_);
  return free_;
}

}  // namespace weft::tool
