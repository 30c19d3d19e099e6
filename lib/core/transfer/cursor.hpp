// Walks a piece list once, coalescing neighbours into runs and cutting runs into chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "memory/segment_state.hpp"
#include "transfer/piece_list.hpp"

namespace weft::core {

/// What a transport is handed at a time.
struct Chunk {
  enum class Kind : std::uint8_t {
    bytes,
    // Proofs move nothing of the application's, and go out when all bytes have come home.
    // A round trip behind the bytes that the same rail has moved: they are visible at the target
    // (CompletionProof). `local` is the rail, `remote` the position of the target's.
    arrival,
    // Reads the lease word of the lease, over any rail: the bytes were read while the lease held.
    epoch,
  };
  std::uint64_t local = 0;   // offset in the local segment
  std::uint64_t remote = 0;  // offset in the peer's segment
  std::uint64_t length = 0;
  std::uint64_t at = 0;  // bytes of the transfer before it, in the order of its pieces
  Kind kind = Kind::bytes;
  bool touched = false;    // an attempt has failed that may have moved some of its bytes
  std::uint32_t slot = 0;  // the transfer's own

  bool proof() const noexcept { return kind != Kind::bytes; }
};

/// Offsets that no chunk goes over: the multiples of these, which are powers of two.
struct Seams {
  std::uint64_t local = no_seams;   // in the local segment
  std::uint64_t remote = no_seams;  // in the peer's

  bool any() const noexcept { return local != no_seams || remote != no_seams; }
};

/// Constant size, however long the list: work is found when it is asked for. Pieces that follow
/// each other on both sides form one run, also over a seam.
class Cursor {
 public:
  /// All must outlive the cursor. `seams`: null where there are none.
  Cursor(const PieceList& pieces, Picks picks, const Seams* seams = nullptr)
      : pieces_(&pieces),
        picks_(picks ? picks->data() : nullptr),
        count_(picks ? picks->size() : pieces.size()),
        seams_(seams) {
    skip_empty();
  }

  /// The next chunk of at most `limit` bytes; empty at the end.
  std::optional<Chunk> next(std::uint64_t limit);
  bool exhausted() const noexcept { return run_.length == 0 && position_ == count_; }
  /// Where the next chunk begins, if it is not exhausted.
  Pair front() const { return run_.length > 0 ? run_ : piece(position_); }
  /// Bytes handed out so far.
  std::uint64_t walked() const noexcept { return walked_; }
  /// Runs begun so far.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  /// Empty pieces must not make exhausted() say that there is more.
  void skip_empty() {
    while (position_ < count_ && piece(position_).length == 0) ++position_;
  }
  Pair piece(std::size_t position) const {
    return (*pieces_)[picks_ != nullptr ? picks_[position] : position];
  }

  const PieceList* pieces_;
  const std::uint32_t* picks_;  // null: all, or none
  std::size_t count_;
  const Seams* seams_;
  std::size_t position_ = 0;  // of the next piece not yet in run_
  Pair run_;                  // what is left of the current run, as far as it was looked at
  std::uint64_t runs_ = 0;
  std::uint64_t walked_ = 0;
};

}  // namespace weft::core
