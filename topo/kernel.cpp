#include "kernel.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

constexpr const char* rdma_devices = "/sys/class/infiniband";

/// Where a kernel has no such file, or no value now (an interface that is down), nothing is read.
template <typename Value>
Value read_or(const fs::path& path, Value otherwise) {
  std::ifstream file(path);
  Value value{};
  return file >> value ? value : otherwise;
}

}  // namespace

double rdma_gbps(const std::string& device) {
  // "100 Gb/sec (4X EDR)"
  return std::max(0.0, read_or(fs::path(rdma_devices) / device / "ports/1/rate", 0.0));
}

double interface_gbps(const std::string& interface) {
  // Mb/s; -1 where the driver does not know.
  return std::max(0.0, read_or(fs::path("/sys/class/net") / interface / "speed", 0.0) / 1000);
}

std::vector<SoftwareRdma> software_rdma() {
  std::vector<SoftwareRdma> found;
  std::error_code failed;
  for (fs::directory_iterator at(rdma_devices, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    const fs::path& device = at->path();
    // Those of a real function link to it.
    std::error_code unseen;
    if (fs::exists(device / "device", unseen)) continue;
    found.push_back({device.filename(), read_or(device / "parent", std::string())});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

}  // namespace weft::topo
