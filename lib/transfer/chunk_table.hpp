// Which chunks of a transfer are out, and which are still to be carried.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <vector>
#include <weft/transfer.hpp>

#include "transfer/cursor.hpp"
#include "transfer/outcome.hpp"

namespace weft::core {

/// A chunk that was taken is out until it comes home: carried, given back, or lost. Not
/// synchronised.
class ChunkTable {
 public:
  /// `pieces` and `picks` must outlive the table. `lists`: where it keeps what is out.
  ChunkTable(const PieceList& pieces, Picks picks, std::pmr::memory_resource& lists)
      : cursor_(pieces, picks), out_(&lists) {}

  /// Takes the next chunk of at most `limit` bytes; false: there is none. Chunks that were given
  /// back go first.
  bool take(std::uint64_t limit, Chunk& into);
  /// Whether there is nothing to take.
  bool exhausted() const noexcept { return cursor_.exhausted() && cut_.empty(); }

  /// The first so many bytes were carried without a chunk.
  void skip(std::uint64_t bytes);

  /// Its bytes are in their place.
  void carried(const Chunk& chunk);
  /// It may be carried again.
  void give_back(const Chunk& chunk);
  /// It failed, and is not carried again.
  void lost(const Chunk& chunk);

  std::uint64_t runs() const noexcept { return cursor_.runs(); }
  /// Where the first `bytes` bytes are not in their place for sure, and where none was touched.
  struct Gaps {
    std::vector<Span> unknown, untouched;
  };
  Gaps gaps(std::uint64_t bytes) const;

 private:
  void take_cut(std::uint64_t limit, Chunk& into);
  void went_out(Chunk& chunk);
  void came_home(const Chunk& chunk);

  static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

  Cursor cursor_;
  std::vector<Chunk> cut_;                   // given back, and not out
  std::pmr::vector<Span> out_;               // by slot; of length 0 where it is free
  std::uint32_t free_slot_ = no_slot;        // its span begins at the next free one
  std::unique_ptr<std::vector<Span>> lost_;  // null: none
};

}  // namespace weft::core
