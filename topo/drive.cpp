#include "topo/drive.hpp"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "topo/kernel.hpp"

namespace weft::topo {
namespace {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> entries(const fs::path& folder) {
  std::vector<fs::directory_entry> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed); !failed && at != fs::directory_iterator();
       at.increment(failed))
    found.push_back(*at);
  return found;
}

/// The drives below a block device, down its slaves. `seen`: so that no loop of links leads round.
void add_drives(const fs::path& device, std::set<fs::path>& seen, std::set<fs::path>& drives) {
  std::error_code failed;
  const fs::path whole = fs::exists(device / "partition", failed) ? device.parent_path() : device;
  if (!seen.insert(whole).second) return;
  const auto slaves = entries(whole / "slaves");
  if (slaves.empty()) drives.insert(whole);
  for (const auto& each : slaves)
    if (const fs::path slave = fs::canonical(each, failed); !failed)
      add_drives(slave, seen, drives);
}

std::set<fs::path> drives_below(dev_t device, const std::string& sysfs) {
  std::set<fs::path> seen, drives;
  std::error_code none;
  const fs::path link = fmt::format("{}/dev/block/{}:{}", sysfs, major(device), minor(device));
  if (const fs::path at = fs::canonical(link, none); !none) add_drives(at, seen, drives);
  return drives;
}

/// The controllers of a drive that is a device of none, which lie beside it as links; else the
/// drive itself.
std::vector<fs::path> controllers(const fs::path& drive) {
  std::vector<fs::path> found;
  for (const auto& each : entries(drive.parent_path())) {
    std::error_code failed;
    if (!each.is_symlink(failed) || !each.path().filename().string().starts_with("nvme")) continue;
    if (const fs::path controller = fs::canonical(each, failed); !failed)
      found.push_back(controller);
  }
  return found.empty() ? std::vector{drive} : found;
}

/// Of the nearest device above that tells: the controller, or the PCI device that it is.
int node_above(fs::path at) {
  for (; at.has_relative_path(); at = at.parent_path()) {
    int node = -1;
    if (std::ifstream(at / "numa_node") >> node && node >= 0) return node;
  }
  return -1;
}

/// That all have; -1 where they differ.
int common_node(const std::set<fs::path>& drives) {
  std::set<int> nodes;
  for (const fs::path& drive : drives)
    for (const fs::path& controller : controllers(drive)) nodes.insert(node_above(controller));
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

}  // namespace

DrivePlace place_of_drive(dev_t device, const std::string& sysfs) {
  const auto drives = drives_below(device, sysfs);
  DrivePlace place;
  if (drives.size() == 1) place.name = drives.begin()->filename();
  place.numa_node = common_node(drives);
  return place;
}

DrivePlace place_of_drive(dev_t device) {
  return place_of_drive(device, sysfs());
}

std::string name_of_drive(std::string_view block_device) {
  constexpr std::string_view digits = "0123456789";
  const auto has = [&](std::size_t at, char wanted) {
    return at < block_device.size() && block_device[at] == wanted;
  };
  const std::string_view start = "nvme";
  const std::size_t path = block_device.find_first_not_of(digits, start.size());
  if (!block_device.starts_with(start) || !has(path, 'c')) return std::string(block_device);
  const std::size_t end = block_device.find_first_not_of(digits, path + 1);
  if (!has(end, 'n')) return std::string(block_device);
  return std::string(block_device.substr(0, path)).append(block_device.substr(end));
}

int find_drive(const Topology& topology, std::string_view name) {
  const auto has_name = [&](const Drive& each) { return each.name == name; };
  const auto& drives = topology.drives;
  const auto found = std::find_if(drives.begin(), drives.end(), has_name);
  if (name.empty() || std::count_if(drives.begin(), drives.end(), has_name) != 1) return -1;
  return static_cast<int>(found - drives.begin());
}

}  // namespace weft::topo
