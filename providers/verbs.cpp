// InfiniBand and RoCE NICs by reliable connections, which libfabric's ofi_rxm makes into reliable
// datagrams: messages up to 16 KiB go through its buffers, reads and writes straight to the NIC.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "spec.hpp"

namespace weft::providers {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view names[] = {"verbs;ofi_rxm"};

void hints(fi_info& hints) {
  // ofi_rxm connects by IP address, through the kernel's RDMA connection manager.
  hints.addr_format = FI_SOCKADDR_IN;
  hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  // The rail's thread polls anyway; automatic progress would only add a thread to each endpoint.
  hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

void quirks(const fi_info&, Capability& record) {
  // By the NIC, for each registration (environment.cpp).
  record.keys_enforced = true;
  record.fence = FenceScope::grant;
  // The other NIC has acknowledged the bytes. What it writes for a message that came behind them on
  // the same connection, it writes behind them.
  record.proof = CompletionProof::received;
  record.ordered_messages = true;
  record.copies = 0;
  // Of one connection; ofi_rxm promises more for all together (RXM_MSG_RXTX_SIZE in rxm.h, times
  // the part that the engine gives to one peer).
  record.window = std::min<std::size_t>(record.window, 512);
  // The NIC cuts large operations itself. A guess: no such NIC was at hand to measure.
  record.best_chunk = std::uint64_t{1} << 20;
  record.best_window = 16;
  record.best_share = std::uint64_t{1} << 20;
}

bool is_empty(const char* folder) {
  std::error_code error;
  return fs::directory_iterator(folder, error) == fs::directory_iterator();
}

/// Whether this library has verbs and it found a device; it does not tell which of both it lacks.
bool libfabric_has_verbs() {
  const InfoPtr hints(fi_allocinfo());
  if (!hints) return false;
  hints->fabric_attr->prov_name = strdup("verbs");
  fi_info* list = nullptr;
  const int result =
      fi_getinfo(api_version(), nullptr, nullptr, FI_PROV_ATTR_ONLY, hints.get(), &list);
  return InfoPtr(result == 0 ? list : nullptr) != nullptr;
}

std::string absence() {
  if (is_empty("/sys/class/infiniband")) return "this machine has no RDMA device";
  if (is_empty("/dev/infiniband"))
    return "there is no /dev/infiniband: the kernel's module ib_uverbs is not loaded, or this "
           "container was not given the devices";
  std::error_code error;
  bool connects = false;
  for (const auto& device : fs::directory_iterator("/dev/infiniband", error)) {
    const std::string name = device.path().filename();
    connects = connects || name == "rdma_cm";
    if ((name == "rdma_cm" || name.starts_with("uverbs")) &&
        access(device.path().c_str(), R_OK | W_OK) != 0)
      return fmt::format("{} can't be opened: {}", device.path().string(), std::strerror(errno));
  }
  if (!connects)
    return "there is no /dev/infiniband/rdma_cm: the kernel's module rdma_ucm is not loaded, or "
           "this container was not given the device";
  if (!libfabric_has_verbs())
    return "libfabric was built without its provider verbs, or rdma-core has no driver for the "
           "RDMA devices here";
  return "no RDMA device has an active port and an interface with an IPv4 address";
}

}  // namespace

const Spec verbs = {"verbs", names, false,   false, hints,  quirks,
                    nullptr, false, nullptr, true,  absence};

}  // namespace weft::providers
