#include "common/free_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace weft::tool {
namespace {

std::optional<std::uint64_t> number_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::optional<std::uint64_t> left_in_system() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) * 1024;
  return std::nullopt;
}

/// Cached files count as used there, but make room when they must.
std::uint64_t cached_files() {
  std::ifstream file("/sys/fs/cgroup/memory.stat");
  std::string name;
  std::uint64_t value = 0;
  std::uint64_t sum = 0;
  while (file >> name >> value)
    if (name == "inactive_file" || name == "active_file") sum += value;
  return sum;
}

std::optional<std::uint64_t> left_in_control_group() {
  // "max" where there is no limit, which reads as no number.
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  const std::uint64_t held = *used - std::min(*used, cached_files());
  return *limit - std::min(*limit, held);
}

}  // namespace

std::optional<std::uint64_t> free_memory() {
  const auto system = left_in_system();
  const auto group = left_in_control_group();
  if (system && group) return std::min(*system, *group);
  return system ? system : group;
}

}  // namespace weft::tool
