// The transfers of a plan while it is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>
#include <weft/weights_plan.hpp>

namespace weft::weights {

class TransferTable {
 public:
  /// Which transfer a piece belongs to.
  struct Key {
    std::uint32_t chunk = 0;
    std::uint32_t hop = 0;
    Party from;
    std::uint32_t to = 0;
    auto operator<=>(const Key&) const = default;
  };

  /// Adds pieces of `bytes` bytes in all.
  void add(const Key& key, std::span<const Piece> pieces, std::uint64_t bytes);

  /// All, ordered by key, their pieces sorted and joined.
  std::vector<Transfer> take() &&;

 private:
  Transfer& transfer_of(const Key& key);
  void grow();

  std::vector<Transfer> transfers_;
  /// A hash table of indices into transfers_: a look-up touches little memory. At most half full.
  std::vector<std::uint32_t> slots_;
};

}  // namespace weft::weights
