#include "kv/token_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "kv/shape.hpp"

namespace weft::kv {

namespace {

constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

/// The first token of the request behind what the blocks of a side, and of the ranks that share
/// tokens with it, have room for.
std::uint64_t end_of(const Side& side) noexcept {
  // At most 2^32 blocks of 2^32 tokens over 2^10 ranks; what exceeds 64 bits has no end.
  const std::uint64_t blocks = side.blocks.ids.size();
  const std::uint64_t per_block = std::uint64_t{side.group.tokens_per_block} * side.stripes.size;
  if (blocks > (no_end - side.blocks.first_token) / per_block) return no_end;
  return side.blocks.first_token + blocks * per_block;
}

Result<void> check_start(const Side& side) {
  const std::uint64_t first = side.blocks.first_token;
  if (side.stripes.size > 1 && first % side.stripes.period() != 0)
    return fail(Code::invalid_argument,
                fmt::format("The {} blocks of group {} begin with token {}, within a turn of {} "
                            "tokens of context parallelism.",
                            side.name, side.index, first, side.stripes.period()));
  for (const Field& field : side.group.fields)
    if (first % field.tokens_per_row != 0)
      return fail(Code::invalid_argument,
                  fmt::format("The {} blocks of group {} begin with token {}, within a row of {} "
                              "tokens of the field \"{}\".",
                              side.name, side.index, first, field.tokens_per_row, field.name));
  return {};
}

Result<void> check_room(const Side& side, TokenRange tokens) {
  if (tokens.first >= side.blocks.first_token && tokens.first + tokens.count <= end_of(side))
    return {};
  return fail(Code::invalid_argument,
              fmt::format("Tokens {} to {} are to be copied in group {}, but the {} blocks have "
                          "room for {} from token {} on.",
                          tokens.first, tokens.first + tokens.count - 1, side.index, side.name,
                          end_of(side) - side.blocks.first_token, side.blocks.first_token));
}

/// A token's place among the tokens of the rank's own blocks.
std::uint64_t local(const Side& side, std::uint64_t token) noexcept {
  return side.stripes.size == 1
             ? token - side.blocks.first_token
             : side.stripes.before(token) - side.stripes.before(side.blocks.first_token);
}

/// The first token from `token` on that both sides hold; `end` or more if there is none before it.
std::uint64_t shared(const Side& src, const Side& dst, std::uint64_t token,
                     std::uint64_t end) noexcept {
  if (src.stripes.size == 1 && dst.stripes.size == 1) return token;
  std::uint64_t before = no_end;
  while (token != before && token < end) {
    before = token;
    token = dst.stripes.next(src.stripes.next(token));
  }
  return token;
}

/// Whether `next` continues `run` on both sides, as stripes of the same ranks do.
bool continues(const TokenRun& run, const TokenRun& next) noexcept {
  return run.src_block == next.src_block && run.dst_block == next.dst_block &&
         run.src_token + run.tokens == next.src_token &&
         run.dst_token + run.tokens == next.dst_token;
}

}  // namespace

Result<void> check_blocks(const Side& side) {
  const auto& ids = side.blocks.ids;
  const auto beyond =
      std::find_if(ids.begin(), ids.end(), [&](auto block) { return block >= side.group.blocks; });
  if (beyond != ids.end())
    return fail(Code::invalid_argument,
                fmt::format("The {} block {} is out of range: group {} has {} blocks.", side.name,
                            *beyond, side.index, side.group.blocks));
  if (is_state(side.group) && ids.size() > 1)
    return fail(Code::invalid_argument,
                fmt::format("{} {} blocks were given for the state of group {}, which takes one.",
                            ids.size(), side.name, side.index));
  return is_state(side.group) ? Result<void>() : check_start(side);
}

Result<void> check_distinct(const Side& side) {
  std::vector<std::uint32_t> sorted(side.blocks.ids.begin(), side.blocks.ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return fail(Code::invalid_argument, fmt::format("The {} block {} is listed twice in group {}.",
                                                    side.name, *twice, side.index));
  return {};
}

Result<TokenRange> tokens_to_copy(const Side& src, const Side& dst, TokenRange of_request) {
  TokenRange tokens = dst.blocks.tokens.value_or(of_request);
  if (tokens.count > no_end - tokens.first)
    return fail(
        Code::invalid_argument,
        fmt::format("{} tokens from token {} on end beyond 64 bits.", tokens.count, tokens.first));
  const std::uint32_t window = dst.group.window;
  if (!dst.blocks.tokens && window != 0 && tokens.count > window)
    tokens = {tokens.first + tokens.count - window, window};
  if (tokens.count == 0) return tokens;
  return check_room(src, tokens).and_then([&] { return check_room(dst, tokens); }).map([&] {
    return tokens;
  });
}

std::vector<TokenRun> token_runs(const Side& src, const Side& dst, TokenRange tokens) {
  std::vector<TokenRun> runs;
  runs.reserve(src.blocks.ids.size() + dst.blocks.ids.size());
  const std::uint64_t end = tokens.first + tokens.count;
  for (std::uint64_t token = shared(src, dst, tokens.first, end); token < end;) {
    const std::uint64_t from = local(src, token), to = local(dst, token);
    TokenRun run;
    run.src_block = src.blocks.ids[from / src.group.tokens_per_block];
    run.src_token = static_cast<std::uint32_t>(from % src.group.tokens_per_block);
    run.dst_block = dst.blocks.ids[to / dst.group.tokens_per_block];
    run.dst_token = static_cast<std::uint32_t>(to % dst.group.tokens_per_block);
    run.tokens = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        {src.group.tokens_per_block - run.src_token, dst.group.tokens_per_block - run.dst_token,
         src.stripes.left(token), dst.stripes.left(token), end - token}));
    if (!runs.empty() && continues(runs.back(), run))
      runs.back().tokens += run.tokens;
    else
      runs.push_back(run);
    token = shared(src, dst, token + run.tokens, end);
  }
  std::sort(runs.begin(), runs.end(), [](const TokenRun& a, const TokenRun& b) {
    return std::pair(a.dst_block, a.dst_token) < std::pair(b.dst_block, b.dst_token);
  });
  return runs;
}

}  // namespace weft::kv
