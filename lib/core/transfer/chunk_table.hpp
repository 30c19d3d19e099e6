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
#include "transfer/reach.hpp"

namespace weft::core {

/// A chunk that was taken is out until it comes home: carried, given back, or lost. Not
/// synchronised.
class ChunkTable {
 public:
  /// `pieces`, `picks` and `reach` must outlive the table. `lists`: where it keeps what is out.
  ChunkTable(const PieceList& pieces, Picks picks, const Reach& reach,
             std::pmr::memory_resource& lists)
      : all_{Cursor(pieces, picks, reach.seams()), {}}, out_(&lists) {
    if (reach.parted()) part(reach);
  }

  /// Takes the next chunk of at most `limit` bytes that this rail may carry; false: there is none.
  /// Chunks that were given back go first.
  bool take(std::size_t rail, std::uint64_t limit, Chunk& into);
  /// Whether there is nothing to take.
  bool exhausted() const noexcept;
  /// Whether there is nothing that this rail could take.
  bool exhausted_for(std::size_t rail) const noexcept;
  /// Whether rails differ in what they may take.
  bool parted() const noexcept { return parted_ != nullptr; }
  /// Where it is parted: whether there is something to take that none of these rails may carry.
  bool strands(RailBits without) const noexcept;

  /// The first so many bytes were carried without a chunk. Not where it is parted.
  void skip(std::uint64_t bytes);

  /// Its bytes are in their place.
  void carried(const Chunk& chunk);
  /// It may be carried again.
  void give_back(const Chunk& chunk);
  /// It failed, and is not carried again.
  void lost(const Chunk& chunk);

  /// Begun so far; where it is parted, of those that have been looked at.
  std::uint64_t runs() const noexcept;
  /// Where the first `bytes` bytes are not in their place for sure, and where none was touched.
  struct Gaps {
    std::vector<Span> unknown, untouched;
  };
  Gaps gaps(std::uint64_t bytes) const;

 private:
  /// What is left to take.
  struct Stock {
    Cursor walk;
    std::vector<Chunk> cut;  // given back, and not out

    bool empty() const noexcept { return walk.exhausted() && cut.empty(); }
    bool take(std::uint64_t limit, Chunk& into);
    void take_cut(std::uint64_t limit, Chunk& into);
  };
  /// The same of what only these rails may carry. The walk goes over all pieces, and stops where
  /// one of theirs begins: however much others carry, it takes no memory.
  struct Part {
    RailBits rails;
    Stock stock;
  };
  struct Parted {
    const Reach& reach;
    std::vector<Part> parts;  // those with the fewest rails come first
  };

  void part(const Reach& reach);
  static void seek(Cursor& walk, const Reach& reach, RailBits rails);
  Part* part_for(std::size_t rail) const noexcept;
  Stock& stock_of(const Chunk& chunk);
  void went_out(Chunk& chunk);
  void came_home(const Chunk& chunk);
  static void add_cut(const Stock& stock, Gaps& gaps);

  static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

  Stock all_;                                // where it is not parted
  std::unique_ptr<Parted> parted_;           // null: each rail may carry all
  std::pmr::vector<Span> out_;               // by slot; of length 0 where it is free
  std::uint32_t free_slot_ = no_slot;        // its span begins at the next free one
  std::unique_ptr<std::vector<Span>> lost_;  // null: none
};

}  // namespace weft::core
