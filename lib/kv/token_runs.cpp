#include "kv/token_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::kv {

namespace {

/// One side of a group's copy, with the words to speak of it.
struct Side {
  const Group& group;
  std::span<const std::uint32_t> blocks;
  std::uint32_t skip;
  const char* name;
  std::size_t index;

  /// Tokens from the first that isn't skipped to the end of the last block.
  std::uint64_t room() const noexcept {
    return std::uint64_t{blocks.size()} * group.tokens_per_block - skip;
  }
};

Result<void> check_side(const Side& side) {
  if (side.skip >= side.group.tokens_per_block || (side.skip > 0 && side.blocks.empty())) {
    return fail(Code::invalid_argument,
                fmt::format("Can't skip {} tokens in the first of {} {} blocks of {} tokens in "
                            "group {}.",
                            side.skip, side.blocks.size(), side.name, side.group.tokens_per_block,
                            side.index));
  }
  const auto beyond = std::find_if(side.blocks.begin(), side.blocks.end(),
                                   [&](auto block) { return block >= side.group.blocks; });
  if (beyond != side.blocks.end()) {
    return fail(Code::invalid_argument,
                fmt::format("The {} block {} is out of range: group {} has {} blocks.", side.name,
                            *beyond, side.index, side.group.blocks));
  }
  return {};
}

Result<void> check_distinct(const Side& side) {
  std::vector<std::uint32_t> sorted(side.blocks.begin(), side.blocks.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return fail(Code::invalid_argument, fmt::format("The {} block {} is listed twice in group {}.",
                                                    side.name, *twice, side.index));
  }
  return {};
}

Result<std::uint64_t> check_room(const Side& src, const Side& dst,
                                 std::optional<std::uint64_t> tokens) {
  if (!tokens && src.room() != dst.room()) {
    return fail(Code::invalid_argument,
                fmt::format("Without a number of tokens both sides must hold equally many, but in "
                            "group {} the source blocks hold {} and the destination blocks {}.",
                            src.index, src.room(), dst.room()));
  }
  for (const Side* side : {&src, &dst}) {
    if (tokens && *tokens > side->room()) {
      return fail(Code::invalid_argument,
                  fmt::format("{} tokens are to be copied in group {}, but the {} blocks hold {}.",
                              *tokens, side->index, side->name, side->room()));
    }
  }
  return tokens.value_or(src.room());
}

/// A token's block and its number within.
std::pair<std::uint32_t, std::uint32_t> locate(std::span<const std::uint32_t> blocks,
                                               std::uint32_t tokens_per_block,
                                               std::uint64_t token) noexcept {
  return {blocks[token / tokens_per_block], static_cast<std::uint32_t>(token % tokens_per_block)};
}

}  // namespace

Result<std::uint64_t> tokens_to_copy(const Group& src_group, const Group& dst_group,
                                     const Blocks& blocks, std::size_t index) {
  const Side src{src_group, blocks.src, blocks.src_skip, "source", index};
  const Side dst{dst_group, blocks.dst, blocks.dst_skip, "destination", index};
  return check_side(src)
      .and_then([&] { return check_side(dst); })
      .and_then([&] { return check_distinct(dst); })
      .and_then([&] { return check_room(src, dst, blocks.tokens); });
}

std::vector<TokenRun> token_runs(const Group& src, const Group& dst, const Blocks& blocks,
                                 std::uint64_t tokens) {
  std::vector<TokenRun> runs;
  runs.reserve(blocks.src.size() + blocks.dst.size());
  for (std::uint64_t token = 0; token < tokens; token += runs.back().tokens) {
    const auto [src_block, src_token] =
        locate(blocks.src, src.tokens_per_block, token + blocks.src_skip);
    const auto [dst_block, dst_token] =
        locate(blocks.dst, dst.tokens_per_block, token + blocks.dst_skip);
    const std::uint32_t room =
        std::min(src.tokens_per_block - src_token, dst.tokens_per_block - dst_token);
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(room, tokens - token));
    runs.push_back({src_block, src_token, dst_block, dst_token, count});
  }
  std::sort(runs.begin(), runs.end(), [](const TokenRun& a, const TokenRun& b) {
    return std::pair(a.dst_block, a.dst_token) < std::pair(b.dst_block, b.dst_token);
  });
  return runs;
}

}  // namespace weft::kv
