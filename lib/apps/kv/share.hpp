// What of a field a rank holds, and which ranks pass it on.
#pragma once

#include <cstdint>
#include <weft/kv.hpp>

namespace weft::kv {

/// How many ranks hold the same head.
constexpr std::uint32_t replicas_of(std::uint32_t heads, std::uint32_t tp_size) noexcept {
  return tp_size > heads ? tp_size / heads : 1;
}

/// The heads that a rank holds, out of `heads`.
HeadRange heads_of(std::uint32_t heads, Share tp) noexcept;

/// The heads that source rank `src` has to send to destination rank `dst`; count 0 if none. Of the
/// source ranks that hold the same head and the same tokens, one serves a destination rank.
/// `state`: context parallelism doesn't share these out.
HeadRange heads_to_send(std::uint32_t heads, const Parallel& src, const Parallel& dst,
                        bool state) noexcept;

/// The tokens that context parallelism leaves to a rank: stripes of `width` tokens, every `size`-th
/// of them.
struct Stripes {
  std::uint32_t size = 1;
  std::uint32_t index = 0;
  std::uint32_t width = 1;

  explicit Stripes(const Parallel& parallel) noexcept
      : size(parallel.dcp.size),
        index(parallel.tp.rank % parallel.dcp.size),
        width(parallel.dcp.interleave) {}

  std::uint64_t period() const noexcept { return std::uint64_t{size} * width; }
  /// The first token of the rank's that is not less than `token`.
  std::uint64_t next(std::uint64_t token) const noexcept;
  /// Tokens from one of the rank's to the end of its stripe.
  std::uint64_t left(std::uint64_t token) const noexcept;
  /// The rank's tokens before `token`.
  std::uint64_t before(std::uint64_t token) const noexcept;
};

/// Whether some token of the range belongs to both.
bool meet(const Stripes& src, const Stripes& dst, TokenRange tokens) noexcept;

}  // namespace weft::kv
