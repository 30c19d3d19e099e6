#include "peer/pairing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <weft/topology.hpp>

namespace weft::core {
namespace {

bool has(const Introduction& engine, const RailKind& kind) {
  return std::any_of(engine.rails.begin(), engine.rails.end(),
                     [&](const RailAddress& each) { return kind_of(each) == kind; });
}

/// Without those that are out.
std::vector<std::uint32_t> rails_of(const Introduction& engine, const RailKind& kind) {
  std::vector<std::uint32_t> rails;
  for (std::uint32_t i = 0; i < engine.rails.size(); ++i)
    if (kind_of(engine.rails[i]) == kind && engine.rails[i].why_out.empty()) rails.push_back(i);
  return rails;
}

std::vector<double> speeds_of(const Introduction& engine, const std::vector<std::uint32_t>& rails) {
  std::vector<double> gbps;
  gbps.reserve(rails.size());
  for (const std::uint32_t rail : rails) gbps.push_back(engine.rails[rail].mbps / 1000.0);
  return gbps;
}

/// Both have it, but can't use each other's.
constexpr const char* formats_differ =
    "the two sides have it in different formats (versions of Weft, or kinds of addresses)";

bool has_in_another_format(const Introduction& engine, const RailAddress& rail) {
  return std::any_of(engine.rails.begin(), engine.rails.end(), [&](const RailAddress& each) {
    return each.protocol == rail.protocol && each.same_host_only == rail.same_host_only &&
           each.address_format != rail.address_format;
  });
}

/// Why an engine that has no rails of that kind can't use it.
std::string why_lacking(const Introduction& engine, const RailAddress& rail, const char* none) {
  for (const RailAddress& each : engine.rails)
    if (kind_of(each) == kind_of(rail) && !each.why_out.empty()) return each.why_out;
  return has_in_another_format(engine, rail) ? formats_differ : none;
}

void add_once(std::string sentence, std::vector<std::string>& to) {
  if (std::find(to.begin(), to.end(), sentence) == to.end()) to.push_back(std::move(sentence));
}

void add_out(const Introduction& engine, std::vector<std::string>& missed) {
  for (const RailAddress& rail : engine.rails)
    if (!rail.why_out.empty()) add_once(fmt::format("{}: {}", rail.provider, rail.why_out), missed);
}

/// What `engine` prefers to the chosen kind, and `other` has not, or can't be reached by. Means for
/// one host alone are missed only where both have them.
void add_missed(const Introduction& engine, const Introduction& other, const RailKind& chosen,
                const Nearness& near, const std::string& who_lacks,
                std::vector<std::string>& missed) {
  for (const RailAddress& rail : engine.rails) {
    if (kind_of(rail) == chosen) return;
    const bool both = has(other, kind_of(rail));
    const bool unshared = both && rail.same_host_only && near.one_host && !near.same_host;
    if (both && !unshared) continue;
    const bool differs = has_in_another_format(other, rail);
    if (!both && rail.same_host_only && !(near.same_host && differs)) continue;
    add_once(unshared  ? fmt::format("{}: {}", rail.provider, near.reason)
             : differs ? fmt::format("{}: {}", rail.provider, formats_differ)
                       : fmt::format("{} has no {}", who_lacks, rail.provider),
             missed);
  }
}

/// Adds what `engine` prefers to the chosen kind, each with the reason why it is not taken.
void add_not_used(const Introduction& engine, const Introduction& own, const Introduction& peer,
                  const RailKind& chosen, const Nearness& near,
                  std::vector<std::string>& not_used) {
  for (const RailAddress& rail : engine.rails) {
    const RailKind kind = kind_of(rail);
    if (kind == chosen) return;
    const bool too_far = rail.same_host_only && !near.same_host;
    const std::string why =
        too_far                        ? near.reason
        : rails_of(own, kind).empty()  ? why_lacking(own, rail, "this engine has none")
        : rails_of(peer, kind).empty() ? why_lacking(peer, rail, "the peer has none")
                                       : "the other engine prefers another";
    add_once(fmt::format("{}: {}", rail.provider, why), not_used);
  }
}

}  // namespace

RailKind kind_of(const RailAddress& rail) {
  return {rail.protocol, rail.address_format, rail.same_host_only};
}

std::vector<PairedRail> spread(const Introduction& own, const std::vector<std::uint32_t>& ours,
                               const Introduction& peer, const std::vector<std::uint32_t>& theirs) {
  const auto pairs = pair_nics(speeds_of(own, ours), speeds_of(peer, theirs));
  std::vector<PairedRail> rails;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    PairedRail& rail = rails.emplace_back(PairedRail{ours[i], {}});
    for (const NicShare& share : pairs[i])
      rail.targets.push_back({theirs[share.nic], share.weight});
  }
  return rails;
}

Pairing pair_rails(const Introduction& own, const Introduction& peer, const Nearness& near) {
  const Introduction& chooser =
      std::tie(own.name, own.incarnation) < std::tie(peer.name, peer.incarnation) ? own : peer;
  Pairing pairing;
  std::vector<std::string> passed;
  std::set<RailKind> seen;
  for (const RailAddress& candidate : chooser.rails) {
    const RailKind kind = kind_of(candidate);
    if (!seen.insert(kind).second) continue;
    if (candidate.same_host_only && !near.same_host) {
      passed.push_back(fmt::format("{}: {}", candidate.provider, near.reason));
      continue;
    }
    const auto ours = rails_of(own, kind);
    const auto theirs = rails_of(peer, kind);
    if (ours.empty() || theirs.empty()) {
      const Introduction& lacking = ours.empty() ? own : peer;
      passed.push_back(fmt::format("{}: {}", candidate.provider,
                                   why_lacking(lacking, candidate, "only one side has it")));
      continue;
    }
    pairing.rails = spread(own, ours, peer, theirs);
    pairing.theirs = theirs;
    pairing.reason = fmt::format("{} with {} of our rails and {} of the peer's", candidate.provider,
                                 ours.size(), theirs.size());
    std::vector<std::string> missed;
    add_out(own, missed);
    add_out(peer, missed);
    if (!candidate.same_host_only) {
      add_missed(own, peer, kind, near, "the peer", missed);
      add_missed(peer, own, kind, near, "this engine", missed);
    }
    pairing.fallback = fmt::format("{}", fmt::join(missed, "; "));
    add_not_used(own, own, peer, kind, near, pairing.not_used);
    add_not_used(peer, own, peer, kind, near, pairing.not_used);
    break;
  }
  if (pairing.rails.empty()) pairing.reason = "no kind of rail is shared";
  if (!passed.empty()) pairing.reason += fmt::format("; not {}", fmt::join(passed, "; not "));
  return pairing;
}

}  // namespace weft::core
