#include "kv/share.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace weft::kv {

HeadRange heads_of(std::uint32_t heads, Share tp) noexcept {
  if (tp.size <= heads) {
    const std::uint32_t count = heads / tp.size;
    return {tp.rank * count, count};
  }
  return {tp.rank / replicas_of(heads, tp.size), 1};
}

HeadRange heads_to_send(std::uint32_t heads, const Parallel& src, const Parallel& dst,
                        bool state) noexcept {
  // Replicas that differ only in their tokens all serve; of the others, destination ranks take
  // turns among them. With equal sizes each rank meets its own like.
  const std::uint32_t sharing = state ? 1 : src.dcp.size;
  const std::uint32_t replicas = replicas_of(heads, src.tp.size);
  const std::uint32_t copies = replicas / sharing;
  if (src.tp.rank % replicas / sharing != dst.tp.rank / sharing % copies) return {};
  const HeadRange from = heads_of(heads, src.tp);
  const HeadRange to = heads_of(heads, dst.tp);
  const std::uint32_t first = std::max(from.first, to.first);
  const std::uint32_t end = std::min(from.first + from.count, to.first + to.count);
  return first < end ? HeadRange{first, end - first} : HeadRange{};
}

std::uint64_t Stripes::next(std::uint64_t token) const noexcept {
  const std::uint64_t start = std::uint64_t{index} * width;
  const std::uint64_t at = token % period();
  if (at < start) return token - at + start;
  return at < start + width ? token : token - at + period() + start;
}

std::uint64_t Stripes::left(std::uint64_t token) const noexcept {
  return size == 1 ? std::numeric_limits<std::uint64_t>::max() : width - token % width;
}

std::uint64_t Stripes::before(std::uint64_t token) const noexcept {
  const std::uint64_t start = std::uint64_t{index} * width;
  const std::uint64_t at = token % period();
  const std::uint64_t of_period = at > start ? std::min<std::uint64_t>(at - start, width) : 0;
  return token / period() * width + of_period;
}

bool meet(const Stripes& src, const Stripes& dst, TokenRange tokens) noexcept {
  // Both repeat after this many tokens.
  const std::uint64_t period = std::lcm(src.period(), dst.period());
  const std::uint64_t end = tokens.first + std::min(tokens.count, period);
  std::uint64_t token = tokens.first;
  while (token < end) {
    const std::uint64_t both = dst.next(src.next(token));
    if (both == token) return true;
    token = both;
  }
  return false;
}

}  // namespace weft::kv
