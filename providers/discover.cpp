#include <algorithm>
#include <array>
#include <span>

#include "provider.hpp"
#include "shm/shm.hpp"
#include "spec.hpp"

namespace weft::providers {
namespace {

/// A provider that was compiled in.
struct Known {
  ProviderName name;
  /// Adds what it finds.
  void (*look)(std::vector<Seen>& seen);
};

template <const Spec& spec>
void look_through_libfabric(std::vector<Seen>& seen) {
  look_at(spec, seen);
}

/// Best first.
std::span<const Known> all_known() {
  static constexpr std::array known = {
#ifdef WEFT_PROVIDER_SHM
      Known{{"shm", true}, shm::look},
#endif
#ifdef WEFT_PROVIDER_EFA
      Known{{"efa", true}, look_through_libfabric<efa>},
#endif
#ifdef WEFT_PROVIDER_VERBS
      Known{{"verbs", true}, look_through_libfabric<verbs>},
#endif
#ifdef WEFT_PROVIDER_TCP
      Known{{"tcp", true}, look_through_libfabric<tcp>},
#endif
#ifdef WEFT_PROVIDER_FI_SHM
      Known{{"fi_shm", false}, look_through_libfabric<fi_shm>},
#endif
  };
  return known;
}

std::vector<ProviderName> names_of(std::span<const Known> known) {
  std::vector<ProviderName> names;
  for (const Known& each : known) names.push_back(each.name);
  return names;
}

/// What nobody looked at, because it can't be taken anyway.
Seen unseen(std::string_view provider) {
  Seen seen;
  seen.sighting.provider = seen.sighting.title = provider;
  return seen;
}

Candidate as_candidate(const Sighting& sighting, const std::string& reason) {
  Candidate candidate;
  candidate.provider = sighting.title;
  candidate.domain = sighting.domain;
  candidate.fabric = sighting.fabric;
  candidate.reason = reason;
  return candidate;
}

}  // namespace

Result<Found> discover(const Wanted& wanted) {
  const auto names = names_of(all_known());
  const auto order = providers_in_order(names, wanted.providers);
  std::vector<Seen> seen;
  for (const Known& each : all_known()) {
    if (std::find(order.begin(), order.end(), each.name.name) != order.end())
      each.look(seen);
    else
      seen.push_back(unseen(each.name.name));
  }
  std::vector<Sighting> sightings;
  for (const Seen& each : seen) sightings.push_back(each.sighting);
  auto selection = select(sightings, names, wanted);
  if (!selection) return fail(std::move(selection.error()));
  Found found;
  for (std::size_t i = 0; i < seen.size(); ++i)
    found.candidates.push_back(as_candidate(sightings[i], selection->reasons[i]));
  for (const std::size_t i : selection->taken) {
    found.candidates[i].taken = true;
    found.nics.push_back({seen[i].nic, i});
  }
  return found;
}

std::string fallback(const Wanted& wanted, const std::vector<std::string>& taken) {
  // Whoever names or forbids providers or NICs has chosen.
  if (!wanted.providers.empty() || !wanted.nics.empty()) return {};
  return what_is_missed(look_around(), taken);
}

}  // namespace weft::providers
