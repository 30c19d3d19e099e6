// The transfers of a plan while it is made.
#pragma once

#include <cstdint>
#include <unordered_map>
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
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  std::unordered_map<Key, std::uint32_t, Hash> indices_;
  std::vector<Transfer> transfers_;
};

}  // namespace weft::weights
