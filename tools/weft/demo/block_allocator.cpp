#include "demo/block_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace weft::tool {

BlockAllocator::BlockAllocator(std::vector<std::uint32_t> blocks, std::uint64_t seed)
    : blocks_(std::move(blocks)), free_(blocks_.size()) {
  std::mt19937_64 random(seed);
  for (std::size_t group = 0; group < free_.size(); ++group) {
    auto& list = free_[group];
    list.resize(blocks_[group]);
    std::iota(list.begin(), list.end(), 0U);
    std::shuffle(list.begin(), list.end(), random);
  }
}

bool BlockAllocator::has(const std::vector<std::uint32_t>& counts) const {
  for (std::size_t group = 0; group < free_.size(); ++group)
    if (free_[group].size() < counts[group]) return false;
  return true;
}

Result<BlockTable> BlockAllocator::allocate(const std::vector<std::uint32_t>& counts,
                                            Deadline deadline, const std::stop_token& stop) {
  for (std::size_t group = 0; group < free_.size(); ++group)
    if (counts[group] > blocks_[group])
      return fail(Code::out_of_memory,
                  fmt::format("a request needs {} blocks and the cache has {} (see --blocks)",
                              counts[group], blocks_[group]));
  std::unique_lock lock(mutex_);
  const bool free = freed_.wait_until(lock, stop, deadline.when(), [&] { return has(counts); });
  if (!free && stop.stop_requested()) return fail(Code::cancelled, "the run ends early");
  if (!free) return fail(Code::timed_out, "no blocks for a request became free in time");
  BlockTable table;
  for (std::size_t group = 0; group < free_.size(); ++group) {
    auto& list = free_[group];
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(counts[group]);
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
