#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "providers/libfabric/libfabric.hpp"
#include "providers/libfabric/spec.hpp"
#include "providers/provider.hpp"
#include "providers/shm/shm.hpp"

namespace weft::providers {
namespace {

/// A provider that was compiled in.
struct Known {
  ProviderName name;
  bool by_libfabric = false;
  /// Adds what it finds in some of its ways.
  using Look = void(std::span<const unsigned> ways, bool device_memory, std::vector<Seen>& seen);
  std::function<Look> look;
};

[[maybe_unused]] Known through_libfabric(const Spec& spec, bool by_itself = true) {
  Known known{{spec.name, by_itself, {}},
              true,
              [&spec](std::span<const unsigned> ways, bool device_memory, std::vector<Seen>& seen) {
                look_at(spec, ways, device_memory, seen);
              }};
  for (const Way& way : spec.ways) known.name.ways.push_back(way.name());
  return known;
}

/// Best first.
std::span<const Known> all_known() {
  static const std::vector<Known> known = {
#ifdef WEFT_PROVIDER_SHM
      {{"shm", true, {"shm"}}, false, [](auto, bool, std::vector<Seen>& seen) { shm::look(seen); }},
#endif
#ifdef WEFT_PROVIDER_EFA
      through_libfabric(efa),
#endif
#ifdef WEFT_PROVIDER_VERBS
      through_libfabric(verbs),
#endif
#ifdef WEFT_PROVIDER_TCP
      through_libfabric(tcp),
#endif
#ifdef WEFT_PROVIDER_FI_SHM
      through_libfabric(fi_shm, false),
#endif
  };
  return known;
}

std::vector<ProviderName> names_of(std::span<const Known> known) {
  std::vector<ProviderName> names;
  for (const Known& each : known) names.push_back(each.name);
  return names;
}

/// The configuration without the providers that a policy does not allow.
Result<Wanted> allowed_of(Wanted wanted, std::span<const ProviderName> names) {
  const auto& allowed = wanted.allowed;
  if (allowed.empty()) return wanted;
  for (const std::string& name : allowed)
    if (std::none_of(names.begin(), names.end(),
                     [&](const ProviderName& each) { return each.name == name; }))
      return fail(Code::not_found,
                  fmt::format("the policy allows '{}', which is no provider of this build", name));
  for (const ProviderName& each : names)
    if (std::find(allowed.begin(), allowed.end(), each.name) == allowed.end())
      wanted.providers.push_back(fmt::format("^{}", each.name));
  return wanted;
}

/// Fails if there is not the libfabric that the environment names. Without a name, those providers
/// that want it say why there is none.
Result<void> check_named_libfabric() {
  if (!libfabric_is_named()) return {};
  return load_libfabric().map([](const Libfabric*) {});
}

/// A provider that was not looked at, because it can't be taken anyway.
Seen unseen(std::string_view provider) {
  Seen seen;
  seen.found_nic.provider = seen.found_nic.title = provider;
  return seen;
}

Candidate as_candidate(const FoundNic& found_nic, const std::string& reason) {
  Candidate candidate;
  candidate.provider = found_nic.title;
  candidate.domain = found_nic.domain;
  candidate.fabric = found_nic.fabric;
  candidate.pci = found_nic.pci;
  candidate.gbps = found_nic.gbps;
  candidate.is_nic = found_nic.is_nic;
  candidate.reason = reason;
  return candidate;
}

}  // namespace

Result<Found> discover(const Wanted& given) {
  const auto names = names_of(all_known());
  const auto narrowed = allowed_of(given, names);
  if (!narrowed) return fail(narrowed.error());
  const Wanted& wanted = *narrowed;
  const auto choices = choices_of(names, wanted.providers);
  std::vector<Seen> seen;
  for (const Known& each : all_known()) {
    const auto choice = std::find_if(choices.begin(), choices.end(), [&](const Choice& any) {
      return any.provider == each.name.name;
    });
    if (choice == choices.end()) {
      seen.push_back(unseen(each.name.name));
      continue;
    }
    if (each.by_libfabric)
      if (auto named = check_named_libfabric(); !named) return fail(std::move(named.error()));
    each.look(choice->ways, wanted.device_memory, seen);
  }
  std::vector<FoundNic> found_nics;
  for (const Seen& each : seen) found_nics.push_back(each.found_nic);
  auto selection = select(found_nics, names, wanted);
  if (!selection) return fail(std::move(selection.error()));
  Found found;
  for (std::size_t i = 0; i < seen.size(); ++i)
    found.candidates.push_back(as_candidate(found_nics[i], selection->reasons[i]));
  for (const std::size_t i : selection->taken) {
    found.candidates[i].taken = true;
    found.nics.push_back({seen[i].nic, i});
  }
  return found;
}

std::string fallback(const Wanted& wanted, const std::vector<std::string>& taken) {
  // A configuration that names or forbids providers or NICs has chosen.
  if (!wanted.providers.empty() || !wanted.nics.empty()) return {};
  return what_is_missed(look_around(), taken);
}

}  // namespace weft::providers
