#include <fmt/format.h>

#include <algorithm>
#include <weft/kv.hpp>

#include "kv/shape.hpp"

namespace weft::kv {

namespace {

Result<void> check_hashes(std::size_t hashes, std::uint32_t tokens_per_hash, std::uint64_t tokens) {
  if (tokens_per_hash == 0) return fail(Code::invalid_argument, "A hash can't be of 0 tokens.");
  if (hashes <= tokens / tokens_per_hash) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} hashes are offered, but {} tokens fill only {} blocks of {}.", hashes,
                          tokens, tokens / tokens_per_hash, tokens_per_hash));
}

}  // namespace

Result<TokenRange> missing(const Group& group, std::span<const BlockHash> offered,
                           std::span<const BlockHash> held, std::uint32_t tokens_per_hash,
                           std::uint64_t tokens) {
  if (auto ok = check_hashes(offered.size(), tokens_per_hash, tokens); !ok)
    return fail(std::move(ok.error()));
  std::vector<BlockHash> sorted(held.begin(), held.end());
  std::sort(sorted.begin(), sorted.end());
  const auto holds = [&](std::uint64_t block) {
    return block < offered.size() &&
           std::binary_search(sorted.begin(), sorted.end(), offered[block]);
  };
  if (is_state(group)) {
    const bool has =
        tokens > 0 && tokens % tokens_per_hash == 0 && holds(tokens / tokens_per_hash - 1);
    return has ? TokenRange{tokens, 0} : TokenRange{0, tokens};
  }
  const bool cut = group.window != 0 && tokens > group.window;
  const std::uint64_t needed = cut ? tokens - group.window : 0;
  std::uint64_t block = needed / tokens_per_hash;
  while (holds(block)) ++block;
  const std::uint64_t first = std::max(needed, block * tokens_per_hash);
  return TokenRange{first, tokens - first};
}

}  // namespace weft::kv
