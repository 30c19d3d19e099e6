#include "shared/upkeep.hpp"

#include <fmt/format.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace weft::perf {
namespace {

std::uint64_t waits_of(const std::filesystem::path& thread) {
  std::ifstream file(thread / "status");
  for (std::string word; file >> word;) {
    std::uint64_t waits = 0;
    if (word == "voluntary_ctxt_switches:" && file >> waits) return waits;
  }
  return 0;
}

}  // namespace

Upkeep upkeep_of(pid_t process) {
  Upkeep now;
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
    now.cpu_seconds = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  std::error_code gone;
  const auto threads = fmt::format("/proc/{}/task", process);
  for (const auto& thread : std::filesystem::directory_iterator(threads, gone))
    now.voluntary_waits += waits_of(thread.path());
  return now;
}

}  // namespace weft::perf
