// Walks a piece list once, coalescing neighbours into runs and cutting runs into chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transfer/piece_list.hpp"

namespace weft::core {

/// What a transport is handed at a time.
struct Chunk {
  std::uint64_t local = 0;   // offset in the local segment
  std::uint64_t remote = 0;  // offset in the peer's segment
  std::uint64_t length = 0;
  // No bytes, but a round trip behind those that the same rail has moved: it proves that they are
  // visible at the target (CompletionProof). `local` is then the rail, `remote` the position of the
  // target's.
  bool proof = false;
};

/// Constant size, however long the list: work is found when it is asked for. Pieces that follow
/// each other on both sides form one run.
class Cursor {
 public:
  /// Walks the pieces picked, in the order of `picks`; all of them if there are no picks. Both
  /// lists must outlive the cursor.
  Cursor(const PieceList& pieces, const std::vector<std::uint32_t>* picks)
      : pieces_(&pieces), picks_(picks), count_(picks ? picks->size() : pieces.size()) {
    skip_empty();
  }

  /// The next chunk of at most `limit` bytes; empty at the end.
  std::optional<Chunk> next(std::uint64_t limit);
  bool exhausted() const noexcept { return run_.length == 0 && position_ == count_; }
  /// Runs begun so far.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  /// Empty pieces must not make exhausted() say that there is more.
  void skip_empty() {
    while (position_ < count_ && piece(position_).length == 0) ++position_;
  }
  Pair piece(std::size_t position) const {
    return (*pieces_)[picks_ ? (*picks_)[position] : position];
  }

  const PieceList* pieces_;
  const std::vector<std::uint32_t>* picks_;
  std::size_t count_;
  std::size_t position_ = 0;  // of the next piece not yet in run_
  Pair run_;                  // what is left of the current run, as far as it was looked at
  std::uint64_t runs_ = 0;
};

}  // namespace weft::core
