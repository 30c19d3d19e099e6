// Tokens of a request as runs that neither side's blocks interrupt.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/kv.hpp>

namespace weft::kv {

/// Consecutive tokens of a request that lie in one block on either side.
struct TokenRun {
  std::uint32_t src_block = 0;
  std::uint32_t src_token = 0;  ///< Within the block.
  std::uint32_t dst_block = 0;
  std::uint32_t dst_token = 0;
  std::uint32_t tokens = 0;
};

/// Checks the block lists of group `index` and returns how many tokens to copy.
Result<std::uint64_t> tokens_to_copy(const Group& src, const Group& dst, const Blocks& blocks,
                                     std::size_t index);

/// Cuts the tokens to copy, as checked, at the block limits of both sides. Sorted by place in the
/// destination.
std::vector<TokenRun> token_runs(const Group& src, const Group& dst, const Blocks& blocks,
                                 std::uint64_t tokens);

}  // namespace weft::kv
