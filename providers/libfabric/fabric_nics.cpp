// NICs that libfabric knows.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/sync.hpp"
#include "providers/libfabric/capability_record.hpp"
#include "providers/libfabric/environment.hpp"
#include "providers/libfabric/fabric_endpoint.hpp"
#include "providers/libfabric/spec.hpp"
#include "providers/provider.hpp"
#include "topo/kernel.hpp"

namespace weft::providers {
namespace {

class FabricNic final : public Nic {
 public:
  FabricNic(const Spec& spec, const Way& way, InfoPtr info, bool device_memory)
      : spec_(spec), way_(way), info_(std::move(info)), device_memory_(device_memory) {}
  std::string_view provider() const noexcept override { return spec_.name; }
  Result<std::unique_ptr<Endpoint>> open() const override {
    return open_endpoint(spec_, way_, *info_, device_memory_);
  }

 private:
  const Spec& spec_;
  const Way& way_;
  InfoPtr info_;
  const bool device_memory_;
};

/// Of which hints are made. `format`: of addresses; 0: the provider's own.
struct Query {
  bool device_memory = false;
  std::uint32_t format = FI_FORMAT_UNSPEC;
};

InfoPtr make_hints(const Spec& spec, const Way& way, const Query& query) {
  InfoPtr hints = copy_of(nullptr);
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                FI_REMOTE_WRITE | (way.tagged ? FI_TAGGED : 0);
  // Posted (endpoint.hpp) keeps room for either.
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  // One thread posts and polls, others register memory and insert addresses.
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->mr_mode = 0;
  hints->fabric_attr->prov_name = strdup(std::string(way.provider).c_str());
  if (!way.fabric.empty()) hints->fabric_attr->name = strdup(std::string(way.fabric).c_str());
  spec.hints(*hints);
  if (query.format != FI_FORMAT_UNSPEC) hints->addr_format = query.format;
  if (query.device_memory) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  return hints;
}

InfoPtr ask(const Spec& spec, const Way& way, const Query& query, long& result) {
  const InfoPtr hints = make_hints(spec, way, query);
  fi_info* list = nullptr;
  result = hints ? libfabric().getinfo(api_version(), nullptr, nullptr, 0, hints.get(), &list)
                 : -FI_ENOMEM;
  return InfoPtr(result == 0 ? list : nullptr);
}

/// Those that reach device memory, if that is wanted and libfabric has any.
InfoPtr ask_for_best(const Spec& spec, const Way& way, Query query, long& result) {
  if (query.device_memory && spec.device_memory)
    if (InfoPtr list = ask(spec, way, query, result)) return list;
  query.device_memory = false;
  return ask(spec, way, query, result);
}

/// Whether it has a meaning within one network alone, and with the name of an interface.
bool is_link_local(const fi_info& info) {
  const auto* any = static_cast<const sockaddr*>(info.src_addr);
  return any != nullptr && any->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(any)->sin6_addr);
}

/// Empty if it is reached by another kind of address.
std::string source_ip(const fi_info& info) {
  char text[INET6_ADDRSTRLEN] = "";
  const auto* any = static_cast<const sockaddr*>(info.src_addr);
  if (any == nullptr) return {};
  if (any->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(any)->sin_addr, text, sizeof text);
  else if (any->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(any)->sin6_addr, text, sizeof text);
  return text;
}

/// As the kernel has it for a PCI function; -1 where it has none.
int numa_node_of(const std::string& pci) {
  if (pci.empty()) return -1;
  std::ifstream file(fmt::format("{}/bus/pci/devices/{}/numa_node", topo::sysfs(), pci));
  int node = -1;
  file >> node;
  return file ? node : -1;
}

std::string title_of(const Spec& spec, const Way& way) {
  return fmt::format("{} ({})", spec.name, way.name());
}

FoundNic describe(const Spec& spec, unsigned way, const fi_info& info) {
  FoundNic found_nic;
  found_nic.provider = spec.name;
  found_nic.title = title_of(spec, spec.ways[way]);
  found_nic.way = way;
  found_nic.domain = nic_name(info);
  found_nic.fabric = info.fabric_attr->name != nullptr ? info.fabric_attr->name : "";
  found_nic.is_nic = spec.is_nic;
  found_nic.pci = pci_address(info);
  found_nic.gbps = link_gbps(info);
  found_nic.numa_node = numa_node_of(found_nic.pci);
  found_nic.score = spec.score;
  if (const std::string slower = spec.held_back ? spec.held_back({}) : ""; !slower.empty())
    found_nic.score += fmt::format("; but {}", slower);
  found_nic.ip = source_ip(info);
  found_nic.chosen_by_ip = spec.chosen_by_ip;
  if (spec.needs_ip && found_nic.ip.empty())
    found_nic.problem = "it has no IP address, by which peers could reach it";
  return found_nic;
}

/// `why`: empty if it was not looked for.
Seen nothing_in(const Spec& spec, unsigned way, const std::string& why) {
  Seen seen;
  seen.found_nic.provider = spec.name;
  seen.found_nic.title = title_of(spec, spec.ways[way]);
  seen.found_nic.way = way;
  seen.found_nic.problem = why;
  return seen;
}

/// Whether people could not tell them apart.
bool same_place(const FoundNic& one, const FoundNic& other) {
  return one.domain == other.domain && one.fabric == other.fabric && one.ip == other.ip;
}

/// Adds the NICs that are reached by addresses of one format. Of those from `others` on, which were
/// looked for by another format, it only takes the place of such as have no address there. Returns
/// libfabric's result.
long look_by_format(const Spec& spec, unsigned index, const Query& query, std::size_t others,
                    std::vector<Seen>& seen) {
  const Way& way = spec.ways[index];
  long result = -FI_ENODATA;
  const InfoPtr list = ask_for_best(spec, way, query, result);
  const std::size_t before = seen.size();
  const auto at = [&](std::size_t place) {
    return seen.begin() + static_cast<std::ptrdiff_t>(place);
  };
  for (const fi_info* info = list.get(); info != nullptr; info = info->next) {
    // "net" brings "net;ofi_rxm" along.
    if (info->fabric_attr->prov_name != way.provider) continue;
    // Before 2.1 efa has one fabric and calls it "efa" whatever is asked for.
    if (!way.fabric.empty() && info->fabric_attr->name != way.fabric) continue;
    FoundNic found_nic = describe(spec, index, *info);
    // Providers may pay no heed to the format in the hints (1.17, prov/net).
    if (query.format != FI_FORMAT_UNSPEC && !found_nic.ip.empty() &&
        (info->addr_format != query.format || is_link_local(*info)))
      continue;
    // ofi_rxm has each interface several times, for attributes that were not asked for; best first.
    if (std::any_of(at(before), seen.end(),
                    [&](const Seen& each) { return same_place(each.found_nic, found_nic); }))
      continue;
    const auto known = std::find_if(at(others), at(before), [&](const Seen& each) {
      return each.found_nic.domain == found_nic.domain;
    });
    const bool better = !found_nic.ip.empty();
    Seen fresh{std::move(found_nic),
               std::make_shared<FabricNic>(spec, way, copy_of(info), query.device_memory)};
    if (known == at(before))
      seen.push_back(std::move(fresh));
    else if (better && known->found_nic.ip.empty())
      *known = std::move(fresh);
  }
  return result;
}

/// Adds the NICs that are reached in one way; returns libfabric's result if there are none.
long look_by(const Spec& spec, unsigned index, bool device_memory, std::vector<Seen>& seen) {
  constexpr std::uint32_t own[] = {FI_FORMAT_UNSPEC};
  const auto formats = spec.address_formats.empty() ? std::span(own) : spec.address_formats;
  const std::size_t before = seen.size();
  long result = 0;
  for (const std::uint32_t format : formats) {
    const long answer = look_by_format(spec, index, {device_memory, format}, before, seen);
    if (result == 0) result = answer;
  }
  if (seen.size() > before) return 0;
  return result != 0 ? result : -FI_ENODATA;
}

/// Adds what is found in some of its ways, and why there is nothing in the others of these.
void look_in_libfabric(const Spec& spec, std::span<const unsigned> ways, bool device_memory,
                       std::vector<Seen>& seen) {
  settle_environment();
  if (spec.prepare != nullptr) spec.prepare();

  bool found = false;
  std::vector<std::pair<unsigned, long>> without;
  for (const unsigned way : ways) {
    if (const long result = look_by(spec, way, device_memory, seen); result != 0)
      without.emplace_back(way, result);
    else
      found = true;
    // Another name for the same interfaces tells nothing new.
    if (found && !spec.ways_by_nic) break;
  }
  // Something that the machine lacks explains it, unless another way has found NICs.
  const std::string lack =
      found || without.empty() || spec.why_none == nullptr ? "" : spec.why_none(look_around());
  for (const auto& [way, result] : without)
    seen.push_back(nothing_in(
        spec, way,
        !lack.empty()
            ? lack
            : fmt::format("libfabric {} offers none that serves: {}", libfabric().version_text(),
                          fabric_text(static_cast<int>(-result)))));
}

}  // namespace

void look_at(const Spec& spec, std::span<const unsigned> ways, bool device_memory,
             std::vector<Seen>& seen) {
  static core::Mutex environment;
  const core::Lock lock(environment);
  if (const auto library = load_libfabric())
    look_in_libfabric(spec, ways, device_memory, seen);
  else
    for (const unsigned way : ways)
      seen.push_back(nothing_in(spec, way, library.error().message()));
  for (unsigned way = 0; way < spec.ways.size(); ++way)
    if (std::find(ways.begin(), ways.end(), way) == ways.end())
      seen.push_back(nothing_in(spec, way, {}));
}

}  // namespace weft::providers
