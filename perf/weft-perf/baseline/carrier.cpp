#include "baseline/carrier.hpp"

#include <algorithm>

namespace weft::perf {
namespace {

/// Whether a candidate is of a provider: those that are had in several ways say in which.
bool is_of(const Candidate& candidate, const std::string& provider) {
  return candidate.provider == provider || candidate.provider.starts_with(provider + " (");
}

/// Discovery tells the fabric, too, which a rail does not.
const Candidate* discovered(const Info& info, const RailInfo& rail) {
  const std::string provider = rail.name.substr(0, rail.name.find(':'));
  const auto found =
      std::find_if(info.candidates.begin(), info.candidates.end(), [&](const Candidate& each) {
        return each.taken && each.is_nic && is_of(each, provider) &&
               each.domain == rail.capability.domain;
      });
  return found == info.candidates.end() ? nullptr : &*found;
}

RailKind kind_of(const RailInfo& rail) {
  return {rail.capability.protocol, rail.capability.address_format};
}

/// Where it is of the kind of those before.
void add(const Info& info, const RailInfo& rail, Carrier& carrier) {
  if (carrier.provider.empty()) {
    carrier.provider = rail.capability.provider;
    carrier.kind = kind_of(rail);
  }
  const Candidate* const of = kind_of(rail) == carrier.kind ? discovered(info, rail) : nullptr;
  if (of == nullptr) return;
  const RawNic nic{of->domain, of->fabric};
  if (std::find(carrier.nics.begin(), carrier.nics.end(), nic) == carrier.nics.end())
    carrier.nics.push_back(nic);
}

}  // namespace

Carrier carrier_of(const Info& info, const std::vector<std::string>& rails) {
  Carrier carrier;
  for (const std::string& name : rails)
    for (const RailInfo& rail : info.rails)
      if (rail.name == name) add(info, rail, carrier);
  return carrier;
}

Carrier carrier_of(const Info& info, const RailKind& kind) {
  Carrier carrier;
  for (const RailInfo& rail : info.rails)
    if (kind_of(rail) == kind) add(info, rail, carrier);
  return carrier;
}

}  // namespace weft::perf
