// Which NICs of two machines talk to each other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <weft/topology.hpp>

namespace weft {
namespace {

/// Speeds come from the other side too: whatever they say, what is computed from them fits 64 bits
/// for some thousand NICs.
constexpr double most_gbps = 10000;

/// The slowest that is known; 1 if none is.
double slowest_of(std::span<const double> one, std::span<const double> other) {
  double slowest = most_gbps;
  bool any = false;
  for (const auto& side : {one, other})
    for (const double gbps : side)
      if (gbps > 0) {
        slowest = std::min(slowest, gbps);
        any = true;
      }
  return any ? slowest : 1;
}

/// In tenths of Gb/s, at least one: whole numbers, so that both sides count alike.
std::vector<std::uint64_t> units_of(std::span<const double> gbps, double unknown) {
  std::vector<std::uint64_t> units;
  for (const double each : gbps) {
    const double known = each > 0 ? std::min(each, most_gbps) : unknown;
    units.push_back(
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(known * 10))));
  }
  return units;
}

std::uint64_t sum(const std::vector<std::uint64_t>& units) {
  std::uint64_t all = 0;
  for (const std::uint64_t each : units) all += each;
  return all;
}

}  // namespace

// Both sides' NICs lie side by side along a line of the same length, each as long as it is fast:
// those that lie beside each other talk to each other, as much as they do so.
//
//   own    |   0   |   1   |   2   |
//   peer   |     0     |     1     |      0 -> 0,  1 -> 0 and 1 equally,  2 -> 1
std::vector<std::vector<NicShare>> pair_nics(std::span<const double> own,
                                             std::span<const double> peer) {
  std::vector<std::vector<NicShare>> pairs;
  if (own.empty() || peer.empty()) return pairs;
  const double unknown = slowest_of(own, peer);
  const auto ours = units_of(own, unknown), theirs = units_of(peer, unknown);
  const std::uint64_t stretch_ours = sum(theirs), stretch_theirs = sum(ours);
  pairs.resize(ours.size());
  std::size_t i = 0, j = 0;
  std::uint64_t end_i = ours[0] * stretch_ours, end_j = theirs[0] * stretch_theirs, at = 0;
  while (true) {
    const std::uint64_t next = std::min(end_i, end_j);
    pairs[i].push_back({j, next - at});
    at = next;
    const bool ended_i = end_i == next, ended_j = end_j == next;
    if (ended_i && ++i < ours.size()) end_i += ours[i] * stretch_ours;
    if (ended_j && ++j < theirs.size()) end_j += theirs[j] * stretch_theirs;
    if (i == ours.size() || j == theirs.size()) return pairs;  // both at once
  }
}

}  // namespace weft
