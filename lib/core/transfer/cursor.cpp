#include "transfer/cursor.hpp"

#include <algorithm>

namespace weft::core {
namespace {

/// Bytes from an offset to the next seam.
std::uint64_t up_to_seam(std::uint64_t every, std::uint64_t offset) {
  return every - (offset & (every - 1));
}

}  // namespace

std::optional<Chunk> Cursor::next(std::uint64_t limit) {
  // run_ keeps the place where it ended when it is empty: a neighbour there continues the run.
  while (run_.length < limit && position_ < count_) {
    const Pair next = piece(position_);
    const bool neighbour = runs_ > 0 && next.local == run_.local + run_.length &&
                           next.remote == run_.remote + run_.length;
    if (next.length > 0 && !neighbour) {
      if (run_.length > 0) break;
      run_ = {next.local, next.remote, 0};
      ++runs_;
    }
    run_.length += next.length;
    ++position_;
  }
  if (run_.length == 0) return std::nullopt;
  std::uint64_t length = std::min(run_.length, limit);
  if (seams_ != nullptr)
    length = std::min(
        {length, up_to_seam(seams_->local, run_.local), up_to_seam(seams_->remote, run_.remote)});
  const Chunk chunk{run_.local, run_.remote, length, walked_};
  walked_ += length;
  run_ = {run_.local + length, run_.remote + length, run_.length - length};
  if (run_.length == 0) skip_empty();
  return chunk;
}

}  // namespace weft::core
