// Signs on the machine of NICs that libfabric did not find, so that users learn the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::providers {

struct SystemProbe {
  std::string libfabric;               // its version
  std::string libfabric_problem;       // why there is none; empty: there is one
  std::vector<std::string> efa_nics;   // PCI addresses of Amazon's EFA functions
  unsigned rdma_devices = 0;           // in /sys/class/infiniband, of whatever kind
  unsigned verbs_nodes = 0;            // /dev/infiniband/uverbs*
  bool verbs_nodes_open = false;       // this process may open one of them
  bool rdma_cm = false;                // /dev/infiniband/rdma_cm, which makes verbs connections
  bool rdma_cm_opens = false;          // and this process may open it
  std::uint64_t memlock = UINT64_MAX;  // bytes that this process may pin
};

/// Looks under `root`, which is empty but for tests.
SystemProbe look_around(const std::string& root = {});

/// Why libfabric offers no EFA NIC, or none that can be opened, as a sentence.
std::string why_no_efa(const SystemProbe& around);
/// The same for NICs that speak verbs.
std::string why_no_verbs(const SystemProbe& around);
/// The faster NICs that seem to be here although a slower way is taken; empty if none. `taken`: the
/// providers in use.
std::string what_is_missed(const SystemProbe& around, const std::vector<std::string>& taken);
/// The setting that may keep a stream below the speed of its path; empty if none is known.
std::string what_holds_streams_back(const std::string& root = {});

}  // namespace weft::providers
