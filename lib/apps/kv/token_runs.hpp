// Tokens of a request as runs that neither side's blocks interrupt.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/kv.hpp>

#include "kv/share.hpp"

namespace weft::kv {

/// Consecutive tokens of a request that lie in one block on either side.
struct TokenRun {
  std::uint32_t src_block = 0;
  std::uint32_t src_token = 0;  ///< Within the block.
  std::uint32_t dst_block = 0;
  std::uint32_t dst_token = 0;
  std::uint32_t tokens = 0;
};

/// One side of a copy, with the words to speak of it.
struct Side {
  const char* name;
  const Group& group;
  std::size_t index;  ///< Of the group.
  const Blocks& blocks;
  Stripes stripes;
};

/// Checks the numbers of the blocks of a group, whether it takes part in a copy or not.
Result<void> check_blocks(const Side& side);
/// And whether a destination's are listed once.
Result<void> check_distinct(const Side& side);

/// The tokens to copy into the group `dst`, whose blocks were checked: those of the request that
/// its window reaches, or what the caller says of this group.
Result<TokenRange> tokens_to_copy(const Side& src, const Side& dst, TokenRange of_request);

/// Cuts the tokens to copy, as checked, at the block limits of both sides, and leaves out those
/// that one of them doesn't hold. Sorted by place in the destination.
std::vector<TokenRun> token_runs(const Side& src, const Side& dst, TokenRange tokens);

}  // namespace weft::kv
