#include "transfer/chunk_table.hpp"

#include <algorithm>

namespace weft::core {
namespace {

constexpr std::uint64_t all_bytes = std::numeric_limits<std::uint64_t>::max();

}  // namespace

void ChunkTable::part(const Reach& reach) {
  parted_ = std::make_unique<Parted>(Parted{reach, {}});
  for (const RailBits rails : reach.parts()) {
    Part& part = parted_->parts.emplace_back(Part{rails, all_});
    seek(part.stock.walk, reach, rails);
  }
}

/// On to where something begins that these rails carry.
void ChunkTable::seek(Cursor& walk, const Reach& reach, RailBits rails) {
  while (!walk.exhausted()) {
    const Pair next = walk.front();
    if (reach.rails_for(next.local, next.remote) == rails) return;
    walk.next(all_bytes);
  }
}

inline bool ChunkTable::Stock::take(std::uint64_t limit, Chunk& into) {
  if (!cut.empty()) {
    take_cut(limit, into);
    return true;
  }
  const auto chunk = walk.next(limit);
  if (chunk) into = *chunk;
  return chunk.has_value();
}

bool ChunkTable::take(std::size_t rail, std::uint64_t limit, Chunk& into) {
  if (!parted_) {
    if (!all_.take(limit, into)) return false;
  } else {
    Part* const part = part_for(rail);
    if (part == nullptr) return false;
    part->stock.take(limit, into);
    seek(part->stock.walk, parted_->reach, part->rails);
  }
  went_out(into);
  return true;
}

/// One from which this rail takes next: what few others may carry goes first. Null: there is none.
ChunkTable::Part* ChunkTable::part_for(std::size_t rail) const noexcept {
  const RailBits bit = parted_->reach.bit_of(rail);
  const auto found = std::find_if(
      parted_->parts.begin(), parted_->parts.end(),
      [&](const Part& part) { return (part.rails & bit) != 0 && !part.stock.empty(); });
  return found == parted_->parts.end() ? nullptr : &*found;
}

bool ChunkTable::exhausted() const noexcept {
  if (!parted_) return all_.empty();
  return std::all_of(parted_->parts.begin(), parted_->parts.end(),
                     [](const Part& part) { return part.stock.empty(); });
}

bool ChunkTable::exhausted_for(std::size_t rail) const noexcept {
  return parted_ ? part_for(rail) == nullptr : all_.empty();
}

bool ChunkTable::strands(RailBits without) const noexcept {
  return std::any_of(parted_->parts.begin(), parted_->parts.end(), [&](const Part& part) {
    return (part.rails & without) == 0 && !part.stock.empty();
  });
}

/// It may have been cut for a rail that takes more at a time.
void ChunkTable::Stock::take_cut(std::uint64_t limit, Chunk& into) {
  Chunk& last = cut.back();
  into = last;
  into.length = std::min(last.length, limit);
  last.local += into.length;
  last.remote += into.length;
  last.at += into.length;
  last.length -= into.length;
  if (last.length == 0) cut.pop_back();
}

void ChunkTable::skip(std::uint64_t bytes) {
  while (all_.walk.walked() < bytes) all_.walk.next(bytes - all_.walk.walked());
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
  stock_of(chunk).cut.push_back(chunk);
}

ChunkTable::Stock& ChunkTable::stock_of(const Chunk& chunk) {
  if (!parted_) return all_;
  const RailBits rails = parted_->reach.rails_for(chunk.local, chunk.remote);
  return std::find_if(parted_->parts.begin(), parted_->parts.end(),
                      [&](const Part& part) { return part.rails == rails; })
      ->stock;
}

void ChunkTable::lost(const Chunk& chunk) {
  came_home(chunk);
  if (!lost_) lost_ = std::make_unique<std::vector<Span>>();
  lost_->push_back({chunk.at, chunk.length});
}

std::uint64_t ChunkTable::runs() const noexcept {
  std::uint64_t runs = all_.walk.runs();
  if (parted_)
    for (const Part& part : parted_->parts) runs = std::max(runs, part.stock.walk.runs());
  return runs;
}

ChunkTable::Gaps ChunkTable::gaps(std::uint64_t bytes) const {
  Gaps gaps;
  if (lost_) gaps.unknown = *lost_;
  for (const Span& out : out_)
    if (out.length > 0) gaps.unknown.push_back(out);
  if (!parted_) {
    gaps.untouched.push_back({all_.walk.walked(), bytes - all_.walk.walked()});
    add_cut(all_, gaps);
    return gaps;
  }
  for (const Part& part : parted_->parts) {
    add_cut(part.stock, gaps);
    for (Cursor rest = part.stock.walk; !rest.exhausted();) {
      const auto chunk = rest.next(all_bytes);
      gaps.untouched.push_back({chunk->at, chunk->length});
      seek(rest, parted_->reach, part.rails);
    }
  }
  return gaps;
}

void ChunkTable::add_cut(const Stock& stock, Gaps& gaps) {
  for (const Chunk& chunk : stock.cut)
    (chunk.touched ? gaps.unknown : gaps.untouched).push_back({chunk.at, chunk.length});
}

}  // namespace weft::core
