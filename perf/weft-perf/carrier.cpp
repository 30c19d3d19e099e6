#include "carrier.hpp"

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

void add_nic(const Info& info, const RailInfo& rail, std::vector<RawNic>& nics) {
  const Candidate* const of = discovered(info, rail);
  if (of == nullptr) return;
  const RawNic nic{of->domain, of->fabric};
  if (std::find(nics.begin(), nics.end(), nic) == nics.end()) nics.push_back(nic);
}

}  // namespace

Carrier carrier_of(const Info& info, const std::vector<std::string>& rails) {
  Carrier carrier;
  for (const std::string& name : rails)
    for (const RailInfo& rail : info.rails) {
      if (rail.name != name) continue;
      if (carrier.provider.empty()) carrier.provider = rail.capability.provider;
      if (rail.capability.provider == carrier.provider) add_nic(info, rail, carrier.nics);
    }
  return carrier;
}

std::vector<RawNic> nics_of(const Info& info, const std::string& provider) {
  std::vector<RawNic> nics;
  for (const RailInfo& rail : info.rails)
    if (rail.capability.provider == provider) add_nic(info, rail, nics);
  return nics;
}

}  // namespace weft::perf
