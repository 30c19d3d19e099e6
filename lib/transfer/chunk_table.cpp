#include "transfer/chunk_table.hpp"

#include <algorithm>

namespace weft::core {

bool ChunkTable::take(std::uint64_t limit, Chunk& into) {
  if (!cut_.empty()) {
    take_cut(limit, into);
    return true;
  }
  const auto chunk = cursor_.next(limit);
  if (!chunk) return false;
  into = *chunk;
  went_out(into);
  return true;
}

/// It may have been cut for a rail that takes more at a time.
void ChunkTable::take_cut(std::uint64_t limit, Chunk& into) {
  Chunk& last = cut_.back();
  into = last;
  into.length = std::min(last.length, limit);
  last.local += into.length;
  last.remote += into.length;
  last.at += into.length;
  last.length -= into.length;
  if (last.length == 0) cut_.pop_back();
  went_out(into);
}

void ChunkTable::skip(std::uint64_t bytes) {
  while (cursor_.walked() < bytes) cursor_.next(bytes - cursor_.walked());
}

void ChunkTable::went_out(Chunk& chunk) {
  if (free_slot_ == no_slot) {
    chunk.slot = static_cast<std::uint32_t>(out_.size());
    out_.push_back({chunk.at, chunk.length});
    return;
  }
  chunk.slot = free_slot_;
  free_slot_ = static_cast<std::uint32_t>(out_[chunk.slot].at);
  out_[chunk.slot] = {chunk.at, chunk.length};
}

void ChunkTable::came_home(const Chunk& chunk) {
  out_[chunk.slot] = {free_slot_, 0};
  free_slot_ = chunk.slot;
}

void ChunkTable::carried(const Chunk& chunk) {
  came_home(chunk);
}

void ChunkTable::give_back(const Chunk& chunk) {
  came_home(chunk);
  cut_.push_back(chunk);
}

void ChunkTable::lost(const Chunk& chunk) {
  came_home(chunk);
  if (!lost_) lost_ = std::make_unique<std::vector<Span>>();
  lost_->push_back({chunk.at, chunk.length});
}

ChunkTable::Gaps ChunkTable::gaps(std::uint64_t bytes) const {
  Gaps gaps;
  gaps.untouched.push_back({cursor_.walked(), bytes - cursor_.walked()});
  if (lost_) gaps.unknown = *lost_;
  for (const Chunk& chunk : cut_)
    (chunk.touched ? gaps.unknown : gaps.untouched).push_back({chunk.at, chunk.length});
  for (const Span& out : out_)
    if (out.length > 0) gaps.unknown.push_back(out);
  return gaps;
}

}  // namespace weft::core
