#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::string_view name;
  /// Whether it is looked at without being asked for by name.
  bool by_itself;
  /// Adds its NICs to those found; fails if none serves.
  Result<void> (*look)(const Wanted& wanted, Found& found);
};

template <const Spec& spec>
Result<void> look_through_libfabric(const Wanted& wanted, Found& found) {
  return look_at(spec, wanted, found);
}

/// Best first.
std::span<const Known> all_known() {
  static constexpr std::array known = {
#ifdef WEFT_PROVIDER_SHM
      Known{"shm", true, shm::look},
#endif
#ifdef WEFT_PROVIDER_VERBS
      Known{"verbs", true, look_through_libfabric<verbs>},
#endif
#ifdef WEFT_PROVIDER_TCP
      Known{"tcp", true, look_through_libfabric<tcp>},
#endif
#ifdef WEFT_PROVIDER_FI_SHM
      Known{"fi_shm", false, look_through_libfabric<fi_shm>},
#endif
  };
  return known;
}

const Known* find_known(std::string_view name) {
  for (const Known& each : all_known())
    if (each.name == name) return &each;
  return nullptr;
}

Result<std::vector<const Known*>> choose(const std::vector<std::string>& names) {
  std::vector<const Known*> chosen;
  if (names.empty())
    for (const Known& each : all_known())
      if (each.by_itself) chosen.push_back(&each);
  for (const std::string& name : names) {
    const Known* known = find_known(name);
    if (known == nullptr) {
      std::vector<std::string_view> all;
      for (const Known& each : all_known()) all.push_back(each.name);
      return fail(Code::not_found, fmt::format("this build has no provider '{}'; it has: {}", name,
                                               fmt::join(all, ", ")));
    }
    if (std::find(chosen.begin(), chosen.end(), known) == chosen.end()) chosen.push_back(known);
  }
  return chosen;
}

}  // namespace

Result<Found> discover(const Wanted& wanted) {
  auto chosen = choose(wanted.providers);
  if (!chosen) return fail(std::move(chosen.error()));
  Found found;
  for (const Known* each : *chosen) {
    auto served = each->look(wanted, found);
    // What was asked for by name and can't be had is an error, never a silent fallback.
    if (!served && !wanted.providers.empty()) return fail(std::move(served.error()));
  }
  for (const Known& each : all_known()) {
    if (std::find(chosen->begin(), chosen->end(), &each) != chosen->end()) continue;
    Candidate passed;
    passed.provider = each.name;
    passed.reason = wanted.providers.empty() ? "taken only when it is asked for by name"
                                             : "not among the providers asked for";
    found.candidates.push_back(std::move(passed));
  }
  return found;
}

}  // namespace weft::providers
