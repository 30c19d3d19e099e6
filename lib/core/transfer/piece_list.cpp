#include "transfer/piece_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lease/grant_state.hpp"

namespace weft::core {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

/// Whether base + count * stride + length fits 64 bits.
bool fits(std::uint64_t base, std::uint64_t count, std::uint64_t stride, std::uint64_t length) {
  std::uint64_t distance = 0, end = 0;
  return !__builtin_mul_overflow(count, stride, &distance) &&
         !__builtin_add_overflow(base, distance, &end) && end <= most - length;
}

bool inside(const Range& range, std::uint64_t offset, std::uint64_t length) {
  return offset >= range.offset && offset - range.offset <= range.length &&
         length <= range.length - (offset - range.offset);
}

}  // namespace

PieceList::PieceList(const Paged& paged)
    : pieces_(Pages{paged,
                    {paged.local_pages.begin(), paged.local_pages.end()},
                    {paged.remote_pages.begin(), paged.remote_pages.end()}}),
      size_(paged.local_pages.size()) {}

Result<void> check_form(const Strided& strided) {
  const Pair& first = strided.first;
  // Either would allow more pieces than can be walked.
  if (first.length == 0) return fail(Code::invalid_argument, "the strided form's pieces are empty");
  if (strided.count > 1 && strided.local_stride == 0 && strided.remote_stride == 0)
    return fail(Code::invalid_argument, "both strides are 0: every piece would be the same");
  if (fits(first.local, strided.count, strided.local_stride, first.length) &&
      fits(first.remote, strided.count, strided.remote_stride, first.length))
    return {};
  return fail(Code::invalid_argument, "the strided form reaches beyond 64-bit offsets");
}

Result<void> check_form(const Paged& paged) {
  if (paged.local_pages.size() != paged.remote_pages.size())
    return fail(Code::invalid_argument,
                fmt::format("the paged form lists {} local pages and {} remote ones",
                            paged.local_pages.size(), paged.remote_pages.size()));
  constexpr std::uint64_t last_page = std::numeric_limits<std::uint32_t>::max();
  if (fits(paged.local_base, last_page, paged.local_stride, paged.page_bytes) &&
      fits(paged.remote_base, last_page, paged.remote_stride, paged.page_bytes))
    return {};
  return fail(Code::invalid_argument, "the paged form reaches beyond 64-bit offsets");
}

Result<std::uint64_t> check_pieces(const PieceList& pieces, const Bounds& bounds) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Pair piece = pieces[i];
    if (!inside({0, bounds.local_size}, piece.local, piece.length))
      return fail(Code::invalid_argument,
                  fmt::format("piece {} leaves the local segment: {} bytes at {} of {}", i,
                              piece.length, piece.local, bounds.local_size));
    if (!covered_by(bounds.remote, piece.remote, piece.length))
      return fail(Code::invalid_argument,
                  fmt::format("piece {} leaves what the peer granted: {} bytes at {}", i,
                              piece.length, piece.remote));
    const std::uint64_t ends = piece.length | (piece.local & (bounds.local_block - 1)) |
                               (piece.remote & (bounds.remote_block - 1));
    if (const std::uint64_t block = std::max(bounds.local_block, bounds.remote_block);
        ends % block != 0)
      return fail(Code::invalid_argument,
                  fmt::format("piece {} is not aligned to the file's {}-byte checked blocks: "
                              "{} bytes at {} here and {} there",
                              i, block, piece.length, piece.local, piece.remote));
    if (__builtin_add_overflow(total, piece.length, &total))
      return fail(Code::invalid_argument, "the pieces together have more than 2^64 bytes");
  }
  return total;
}

}  // namespace weft::core
