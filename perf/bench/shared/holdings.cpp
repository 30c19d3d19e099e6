#include "shared/holdings.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weft::perf {
namespace {

/// A line of /proc/self/status, e.g. "VmRSS:     1234 kB", in bytes; 0 where there is none.
std::size_t bytes_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::size_t kilobytes = 0;
    if (word == name + ':' && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Holdings holdings() {
  Holdings now;
  now.resident = bytes_of("VmRSS");
  now.pinned = bytes_of("VmPin");
  now.descriptors = entries_of("/proc/self/fd");
  now.threads = entries_of("/proc/self/task");
  return now;
}

}  // namespace weft::perf
