// The pieces of a transfer in whatever form the application gave them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::core {

/// Random access to pieces without storing more than the application's own description of them.
class PieceList {
 public:
  /// A single pair takes no allocation.
  explicit PieceList(std::span<const Pair> pairs) : size_(pairs.size()) {
    if (pairs.size() == 1)
      pieces_ = Strided{.first = pairs.front(), .count = 1};
    else
      pieces_ = std::vector<Pair>(pairs.begin(), pairs.end());
  }
  explicit PieceList(const Strided& strided) : pieces_(strided), size_(strided.count) {}
  /// Both page lists must have the same length.
  explicit PieceList(const Paged& paged);

  std::size_t size() const noexcept { return size_; }
  Pair operator[](std::size_t index) const {
    if (const auto* pairs = std::get_if<std::vector<Pair>>(&pieces_)) return (*pairs)[index];
    if (const auto* strided = std::get_if<Strided>(&pieces_))
      return {strided->first.local + index * strided->local_stride,
              strided->first.remote + index * strided->remote_stride, strided->first.length};
    const auto& pages = *std::get_if<Pages>(&pieces_);
    return {pages.form.local_base + pages.local[index] * pages.form.local_stride,
            pages.form.remote_base + pages.remote[index] * pages.form.remote_stride,
            pages.form.page_bytes};
  }

 private:
  struct Pages {
    Paged form;  // its spans are not used
    std::vector<std::uint32_t> local, remote;
  };
  std::variant<std::vector<Pair>, Strided, Pages> pieces_;
  std::size_t size_;
};

/// Which pieces of a list, in this order; empty: all.
using Picks = std::optional<std::span<const std::uint32_t>>;

/// Checks that no offset of the form overflows, before the list is read.
Result<void> check_form(const Strided& strided);
Result<void> check_form(const Paged& paged);

/// Where the pieces must lie.
struct Bounds {
  std::uint64_t local_size = 0;
  std::span<const Range> remote;  // sorted, not overlapping
  // Powers of two: pieces are whole blocks of so many bytes, on that side.
  std::uint64_t local_block = 1, remote_block = 1;
};

/// Checks every piece; returns the bytes in all of them.
Result<std::uint64_t> check_pieces(const PieceList& pieces, const Bounds& bounds);

}  // namespace weft::core
