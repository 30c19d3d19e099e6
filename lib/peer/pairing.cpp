#include "peer/pairing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace weft::core {
namespace {

std::vector<std::uint32_t> rails_of(const Introduction& engine, const RailKind& kind) {
  std::vector<std::uint32_t> rails;
  for (std::uint32_t i = 0; i < engine.rails.size(); ++i)
    if (kind_of(engine.rails[i]) == kind) rails.push_back(i);
  return rails;
}

/// Positions among `theirs` rails that position `own` of `ours` sends to.
std::vector<std::size_t> targets_of(std::size_t own, std::size_t ours, std::size_t theirs) {
  if (theirs <= ours) return {own % theirs};
  std::vector<std::size_t> targets;
  for (std::size_t target = own; target < theirs; target += ours) targets.push_back(target);
  return targets;
}

/// Positions among `theirs` rails that send to position `own` of `ours`.
std::vector<std::size_t> sources_of(std::size_t own, std::size_t ours, std::size_t theirs) {
  std::vector<std::size_t> sources;
  for (std::size_t source = 0; source < theirs; ++source) {
    const auto targets = targets_of(source, theirs, ours);
    if (std::find(targets.begin(), targets.end(), own) != targets.end()) sources.push_back(source);
  }
  return sources;
}

/// What `engine` prefers to the chosen kind, and `other` has not.
void add_missed(const Introduction& engine, const Introduction& other, const RailKind& chosen,
                const std::string& who_lacks, std::vector<std::string>& missed) {
  for (const RailAddress& rail : engine.rails) {
    if (kind_of(rail) == chosen) return;
    if (rail.same_host_only || !rails_of(other, kind_of(rail)).empty()) continue;
    const std::string sentence = fmt::format("{} has no {}", who_lacks, rail.provider);
    if (std::find(missed.begin(), missed.end(), sentence) == missed.end())
      missed.push_back(sentence);
  }
}

}  // namespace

RailKind kind_of(const RailAddress& rail) {
  return {rail.protocol, rail.address_format, rail.same_host_only};
}

Pairing pair_rails(const Introduction& own, const Introduction& peer, bool same_host,
                   const std::string& same_host_reason) {
  const Introduction& chooser =
      std::tie(own.name, own.incarnation) < std::tie(peer.name, peer.incarnation) ? own : peer;
  Pairing pairing;
  std::vector<std::string> passed;
  std::set<RailKind> seen;
  for (const RailAddress& candidate : chooser.rails) {
    const RailKind kind = kind_of(candidate);
    if (!seen.insert(kind).second) continue;
    if (candidate.same_host_only && !same_host) {
      passed.push_back(fmt::format("{}: {}", candidate.provider, same_host_reason));
      continue;
    }
    const auto ours = rails_of(own, kind);
    const auto theirs = rails_of(peer, kind);
    if (ours.empty() || theirs.empty()) {
      passed.push_back(fmt::format("{}: only one side has it", candidate.provider));
      continue;
    }
    for (std::size_t i = 0; i < ours.size(); ++i) {
      PairedRail rail{ours[i], {}, {}};
      for (const std::size_t target : targets_of(i, ours.size(), theirs.size()))
        rail.targets.push_back(theirs[target]);
      for (const std::size_t source : sources_of(i, ours.size(), theirs.size()))
        rail.sources.push_back(theirs[source]);
      pairing.rails.push_back(std::move(rail));
    }
    pairing.reason = fmt::format("{} with {} of our rails and {} of the peer's", candidate.provider,
                                 ours.size(), theirs.size());
    std::vector<std::string> missed;
    if (!candidate.same_host_only) {
      add_missed(own, peer, kind, "the peer", missed);
      add_missed(peer, own, kind, "this engine", missed);
    }
    pairing.fallback = fmt::format("{}", fmt::join(missed, "; "));
    break;
  }
  if (pairing.rails.empty()) pairing.reason = "no kind of rail is shared";
  if (!passed.empty()) pairing.reason += fmt::format("; not {}", fmt::join(passed, "; not "));
  return pairing;
}

}  // namespace weft::core
