#include "providers/libfabric/fabric.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <system_error>

#include "providers/endpoint.hpp"

namespace weft::providers {
namespace {

/// NICs pin the memory that they use, and the kernel answers ENOMEM beyond the limit.
std::string lock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return fmt::format("; RLIMIT_MEMLOCK is {} KiB (ulimit -l), which may be too low",
                     limit.rlim_cur / 1024);
}

}  // namespace

std::uint32_t api_version() {
  return std::min<std::uint32_t>(libfabric().version,
                                 FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
}

std::string fabric_text(int code) {
  // Without libfabric all are the system's: Weft's own shm has no others.
  const Libfabric* const library = loaded_libfabric();
  return library != nullptr ? library->strerror(code) : std::generic_category().message(code);
}

Error fabric_error(std::string_view operation, long result) {
  const int code = static_cast<int>(-result);
  Code kind = Code::fabric_failed;
  std::string hint;
  if (code == FI_ENOMEM) {
    kind = Code::out_of_memory;
    hint = lock_limit();
  } else if (code == FI_EACCES || code == FI_EPERM) {
    kind = Code::permission_denied;
  } else if (code == FI_ENOSPC) {
    kind = Code::out_of_memory;
    hint = "; /dev/shm may be full";
  }
  return Error(kind, fmt::format("libfabric refused: {}{}", fabric_text(code), hint))
      .with_operation(std::string(operation))
      .with_fabric_code(code);
}

std::string nic_name(const fi_info& info) {
  if (info.nic != nullptr && info.nic->device_attr != nullptr &&
      info.nic->device_attr->name != nullptr)
    return info.nic->device_attr->name;
  return info.domain_attr->name != nullptr ? info.domain_attr->name : "";
}

std::string pci_address(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr ||
      info.nic->bus_attr->bus_type != FI_BUS_PCI)
    return {};
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain_id, pci.bus_id, pci.device_id,
                     pci.function_id);
}

double link_gbps(const fi_info& info) {
  if (info.nic == nullptr || info.nic->link_attr == nullptr) return 0;
  return static_cast<double>(info.nic->link_attr->speed) / 1e9;
}

}  // namespace weft::providers
