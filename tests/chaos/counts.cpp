#include "counts.hpp"

#include <fmt/format.h>

namespace weft::chaos {
namespace {

std::string list(const std::map<std::string, std::uint64_t>& counts) {
  std::string words;
  for (const auto& [name, count] : counts)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", name, count);
  return words.empty() ? "none" : words;
}

}  // namespace

std::string Counts::words(std::chrono::duration<double> time) const {
  std::uint64_t all = 0;
  for (const auto& [name, count] : steps) all += count;
  return fmt::format(
      "{} steps in {:.1f} s: {}\n"
      "transfers: {} submitted; {}; {:.1f} MiB done; the longest took {} ms\n"
      "  failed with: {}\n"
      "  refused with: {}\n"
      "signals: {} arrived, {} failed\n"
      "grants: {} imports ({} failed), {} ended, {} quarantined, {} without a fence; the longest "
      "end took {} ms\n"
      "segments: {} released, {} not\n"
      "faults: {}\n"
      "engines: {} opened, {} abandoned, {} closed with a descriptor too many; most memory of a "
      "node with none open {} MiB\n"
      "checks: {} of {} MiB in all\n",
      all, time.count(), list(steps), submitted, list(ends), static_cast<double>(bytes) / (1 << 20),
      slowest_end, list(errors), list(refusals), signals, signals_failed, imports, imports_failed,
      revoked, quarantined, not_fenced, slowest_revoke, released, not_released, list(faults), lives,
      abandoned, kept_one, largest >> 20, checks, bytes_checked >> 20);
}

}  // namespace weft::chaos
