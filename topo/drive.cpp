#include "topo/drive.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "topo/kernel.hpp"

namespace weft::topo {

/// Of the nearest device above it that tells: the controller, or the PCI device that it is.
int numa_node_of_drive(dev_t device, const std::string& sysfs) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at =
      fs::canonical(fmt::format("{}/dev/block/{}:{}", sysfs, major(device), minor(device)), error);
  for (; !error && at.has_relative_path(); at = at.parent_path()) {
    int node = -1;
    if (std::ifstream(at / "numa_node") >> node && node >= 0) return node;
  }
  return -1;
}

int numa_node_of_drive(dev_t device) {
  return numa_node_of_drive(device, sysfs());
}

}  // namespace weft::topo
