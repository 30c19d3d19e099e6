#include "providers/libfabric/system_probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "providers/libfabric/libfabric.hpp"

namespace weft::providers {
namespace {

namespace fs = std::filesystem;

// PCI ids of the EFA generations: 0x1d0f is Amazon (rdma-core, providers/efa/efa.c).
constexpr std::string_view amazon = "0x1d0f";
constexpr std::string_view efa_devices[] = {"0xefa0", "0xefa1", "0xefa2", "0xefa3"};

// A KV cache is gigabytes: a limit below this was never set on purpose.
constexpr std::uint64_t low_memlock = std::uint64_t{64} << 20;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

bool is_efa(const fs::path& function) {
  if (first_word(function / "vendor") != amazon) return false;
  const std::string device = first_word(function / "device");
  return std::find(std::begin(efa_devices), std::end(efa_devices), device) != std::end(efa_devices);
}

bool opens(const fs::path& node) {
  const int fd = open(node.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  return true;
}

/// The obstacle between processes and any RDMA device; empty if none is seen.
std::string obstacle(const SystemProbe& around) {
  if (around.verbs_nodes == 0)
    return "there is no /dev/infiniband/uverbs*: a container must be given the device (docker run "
           "--device /dev/infiniband, or the device plugin of the cluster), a host its driver "
           "(modprobe ib_uverbs)";
  if (!around.verbs_nodes_open)
    return "this process may not open /dev/infiniband/uverbs*: check the permissions of the device "
           "and the device rules of the container";
  if (around.memlock < low_memlock)
    return fmt::format(
        "it may pin {} KiB only (RLIMIT_MEMLOCK): raise the limit (ulimit -l "
        "unlimited, or --ulimit memlock=-1)",
        around.memlock >> 10);
  return {};
}

}  // namespace

SystemProbe look_around(const std::string& root) {
  SystemProbe around;
  if (const Libfabric* const library = loaded_libfabric())
    around.libfabric = library->version_text();
  around.libfabric_problem = libfabric_problem();
  for (const fs::path& function : entries_of(root + "/sys/bus/pci/devices"))
    if (is_efa(function)) around.efa_nics.push_back(function.filename());
  around.rdma_devices = static_cast<unsigned>(entries_of(root + "/sys/class/infiniband").size());
  for (const fs::path& node : entries_of(root + "/dev/infiniband")) {
    if (node.filename() == "rdma_cm") {
      around.rdma_cm = true;
      around.rdma_cm_opens = opens(node);
    }
    if (!node.filename().string().starts_with("uverbs")) continue;
    ++around.verbs_nodes;
    around.verbs_nodes_open = around.verbs_nodes_open || opens(node);
  }
  rlimit limit{};
  const bool unlimited = geteuid() == 0;  // root, as a rule, has CAP_IPC_LOCK
  if (!unlimited && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    around.memlock = limit.rlim_cur;
  return around;
}

std::string why_no_efa(const SystemProbe& around) {
  if (around.efa_nics.empty())
    return "this machine has no EFA NIC that this process can see (PCI 1d0f:efa0 to efa3)";
  const std::string there = fmt::format("EFA is at {}", fmt::join(around.efa_nics, ", "));
  if (const std::string& why = around.libfabric_problem; !why.empty())
    return fmt::format("{}, but {}", there, why);
  if (const std::string why = obstacle(around); !why.empty())
    return fmt::format("{}, but {}", there, why);
  return fmt::format(
      "{}, but libfabric {} does not find it: it was built without its efa "
      "provider, or rdma-core's libefa is missing",
      there, around.libfabric);
}

std::string why_no_verbs(const SystemProbe& around) {
  if (around.rdma_devices == 0)
    return "this machine has no RDMA device that this process can see (/sys/class/infiniband)";
  const std::string there = fmt::format("RDMA devices are here ({})", around.rdma_devices);
  if (const std::string& why = around.libfabric_problem; !why.empty())
    return fmt::format("{}, but {}", there, why);
  if (around.verbs_nodes > 0 && !around.rdma_cm)
    return fmt::format(
        "{}, but there is no /dev/infiniband/rdma_cm: the kernel's module rdma_ucm "
        "is not loaded, or this container was not given the device",
        there);
  if (around.verbs_nodes > 0 && !around.rdma_cm_opens)
    return fmt::format("{}, but this process may not open /dev/infiniband/rdma_cm", there);
  if (const std::string why = obstacle(around); !why.empty())
    return fmt::format("{}, but {}", there, why);
  return fmt::format(
      "{}, but libfabric {} finds none that serves: it was built without its verbs "
      "provider, rdma-core's library for the device is missing, or no port is "
      "active with an interface that has an IPv4 address, or a global IPv6 one",
      there, around.libfabric);
}

std::string what_is_missed(const SystemProbe& around, const std::vector<std::string>& taken) {
  const auto uses = [&](std::string_view name) {
    return std::find(taken.begin(), taken.end(), name) != taken.end();
  };
  if (!around.efa_nics.empty() && !uses("efa")) return why_no_efa(around);
  if (around.rdma_devices > 0 && !uses("efa") && !uses("verbs")) return why_no_verbs(around);
  return {};
}

// BBR sends no faster than its own estimate of the bandwidth. Over loopback that estimate is at
// times a third of what the connection carries, and then stays so for long.
std::string what_holds_streams_back(const std::string& root) {
  const std::string control = first_word(root + "/proc/sys/net/ipv4/tcp_congestion_control");
  if (!control.starts_with("bbr")) return {};
  return fmt::format(
      "the kernel's congestion control {} may hold a stream at a third of its speed over loopback "
      "(sysctl net.ipv4.tcp_congestion_control; reno does not)",
      control);
}

}  // namespace weft::providers
