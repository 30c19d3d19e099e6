#include "topo/kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "topo/read.hpp"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

constexpr const char* rdma_devices = "/sys/class/infiniband";
constexpr const char* interfaces = "/sys/class/net";

/// The first word of a file; empty where a kernel has no such file, or no value now (an interface
/// that is down).
std::string word_in(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

std::string sysfs() {
  const char* place = secure_getenv("SYSFS_PATH");
  return place != nullptr ? place : "/sys";
}

double rdma_gbps(const std::string& device) {
  // "100 Gb/sec (4X EDR)"
  return std::max(0.0, number_in(word_in(fs::path(rdma_devices) / device / "ports/1/rate")));
}

double interface_gbps(const std::string& interface) {
  // Mb/s; -1 where the driver does not know.
  return std::max(0.0, number_in(word_in(fs::path(interfaces) / interface / "speed")) / 1000);
}

bool interface_is_down(const std::string& interface) {
  // RFC 2863; drivers that do not know say "unknown".
  const std::string state = word_in(fs::path(interfaces) / interface / "operstate");
  return state == "down" || state == "lowerlayerdown" || state == "notpresent";
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
    found.push_back({device.filename(), word_in(device / "parent")});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

}  // namespace weft::topo
