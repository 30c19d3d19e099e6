// NICs that libfabric knows.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "capability_record.hpp"
#include "environment.hpp"
#include "fabric_endpoint.hpp"
#include "provider.hpp"
#include "spec.hpp"

namespace weft::providers {
namespace {

class FabricNic final : public Nic {
 public:
  FabricNic(const Spec& spec, InfoPtr info) : spec_(spec), info_(std::move(info)) {}
  std::string_view provider() const noexcept override { return spec_.name; }
  Result<std::unique_ptr<Endpoint>> open() const override { return open_endpoint(spec_, *info_); }

 private:
  const Spec& spec_;
  InfoPtr info_;
};

InfoPtr common_hints(const Spec& spec, std::string_view fabric_name) {
  InfoPtr hints(fi_allocinfo());
  if (!hints) return hints;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
                FI_REMOTE_READ | FI_REMOTE_WRITE;
  // Posted (endpoint.hpp) keeps room for either.
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  // One thread posts and polls, others register memory and insert addresses.
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->mr_mode = 0;
  hints->fabric_attr->prov_name = strdup(std::string(fabric_name).c_str());
  spec.hints(*hints);
  return hints;
}

InfoPtr query(const Spec& spec, std::string_view fabric_name, long& result) {
  const InfoPtr hints = common_hints(spec, fabric_name);
  fi_info* list = nullptr;
  result = hints ? fi_getinfo(api_version(), nullptr, nullptr, 0, hints.get(), &list) : -FI_ENOMEM;
  return InfoPtr(result == 0 ? list : nullptr);
}

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

Candidate describe(const Spec& spec, const fi_info& info) {
  Candidate candidate;
  candidate.provider = fmt::format("{} ({})", spec.name, info.fabric_attr->prov_name);
  candidate.domain = info.domain_attr->name != nullptr ? info.domain_attr->name : "";
  candidate.fabric = info.fabric_attr->name != nullptr ? info.fabric_attr->name : "";
  return candidate;
}

/// Why this NIC is passed over; empty if it serves. `taken` has the domains and addresses of those
/// that were taken: libfabric lists a NIC once for each address, and may do so under two names.
std::string objection(const Spec& spec, const fi_info& info, const std::string& wanted_ip,
                      const std::set<std::string>& taken) {
  const std::string ip = source_ip(info);
  if (spec.by_ip_address && ip != wanted_ip)
    return fmt::format("its address is {}, and rails were asked for on {}",
                       ip.empty() ? "unknown" : ip, wanted_ip);
  if (spec.every_nic && ip.empty()) return "it has no IP address, by which peers could reach it";
  const bool again = spec.every_nic ? taken.contains(info.domain_attr->name) || taken.contains(ip)
                                    : !taken.empty();
  if (again) return "another entry for the same interface was taken already";
  return {};
}

/// Why this NIC is taken.
std::string recommendation(const Spec& spec, const fi_info& info, const std::string& wanted_ip) {
  if (spec.every_nic) return fmt::format("its address is {}", source_ip(info));
  return spec.by_ip_address ? fmt::format("it carries {}", wanted_ip)
                            : "it reaches other processes of this machine";
}

/// What libfabric found, in its order; but where every NIC is taken, the address that was asked for
/// comes first, so that its NIC is used by it and not by another of its addresses.
std::vector<const fi_info*> in_order(const Spec& spec, const fi_info* list,
                                     const std::string& wanted_ip) {
  std::vector<const fi_info*> entries;
  for (const fi_info* info = list; info != nullptr; info = info->next) entries.push_back(info);
  if (spec.every_nic)
    std::stable_partition(entries.begin(), entries.end(),
                          [&](const fi_info* info) { return source_ip(*info) == wanted_ip; });
  return entries;
}

}  // namespace

Result<void> look_at(const Spec& spec, const Wanted& wanted, Found& found) {
  static std::mutex environment;
  const std::lock_guard lock(environment);
  settle_environment();
  if (spec.prepare != nullptr) spec.prepare();

  long result = -FI_ENODATA;
  const auto why_none = [&] {
    return spec.absence != nullptr ? spec.absence() : fabric_text(static_cast<int>(-result));
  };
  for (const std::string_view fabric_name : spec.fabric_names) {
    InfoPtr list = query(spec, fabric_name, result);
    if (!list) {
      Candidate missing;
      missing.provider = fmt::format("{} ({})", spec.name, fabric_name);
      missing.reason =
          fmt::format("libfabric {} offers none that serves: {}", library_version(), why_none());
      found.candidates.push_back(std::move(missing));
      continue;
    }
    std::set<std::string> taken;
    for (const fi_info* info : in_order(spec, list.get(), wanted.rail_address)) {
      Candidate candidate = describe(spec, *info);
      candidate.reason = objection(spec, *info, wanted.rail_address, taken);
      if (candidate.reason.empty()) {
        candidate.taken = true;
        taken.insert({info->domain_attr->name, source_ip(*info)});
        candidate.reason = recommendation(spec, *info, wanted.rail_address);
        found.nics.push_back(std::make_shared<FabricNic>(spec, InfoPtr(fi_dupinfo(info))));
      }
      found.candidates.push_back(std::move(candidate));
    }
    if (!taken.empty()) return {};
    if (spec.every_nic)
      return fail(Code::unavailable,
                  fmt::format("no NIC for provider '{}' has an IP address", spec.name));
    return fail(Code::unavailable, fmt::format("no interface for provider '{}' has the address {}",
                                               spec.name, wanted.rail_address));
  }
  return fail(Code::unavailable,
              fmt::format("libfabric {} has no provider for '{}' (tried {}): {}", library_version(),
                          spec.name, fmt::join(spec.fabric_names, ", "), why_none()));
}

}  // namespace weft::providers
