#include "workload/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::perf {
namespace {

constexpr std::uint64_t filled_at_once = 16 << 20;

}  // namespace

void fill(std::span<std::byte> memory, std::span<const Stretch> stretches,
          const std::stop_token& stop) {
  std::uint64_t next = 0;
  // A gigabyte takes a second: a piece at a time, not to be deaf meanwhile.
  const auto fill_until = [&](std::uint64_t end, const auto& fill_piece) {
    while (next < end && !stop.stop_requested()) {
      const std::uint64_t length = std::min(filled_at_once, end - next);
      fill_piece(memory.subspan(next, length));
      next += length;
    }
  };
  const auto fill_gap = [&](std::uint64_t end) {
    fill_until(end,
               [](std::span<std::byte> gap) { std::fill(gap.begin(), gap.end(), tool::canary); });
  };
  for (const Stretch& stretch : stretches) {
    fill_gap(stretch.at);
    fill_until(stretch.at + stretch.length, [&](std::span<std::byte> piece) {
      tool::pattern(stretch.seed, stretch.from + (next - stretch.at), piece);
    });
  }
  fill_gap(memory.size());
}

Findings check(std::span<const std::byte> memory, std::span<const Stretch> stretches) {
  Findings findings;
  std::uint64_t next = 0;
  const auto add = [&](std::uint64_t length, const tool::Difference& found) {
    findings.add(length, found, [&](const tool::Difference& wrong) {
      return fmt::format("byte {} is {:#04x} and should be {:#04x}", next + wrong.first,
                         std::to_integer<int>(wrong.found), std::to_integer<int>(wrong.wanted));
    });
    next += length;
  };
  const auto check_gap = [&](std::uint64_t end) {
    add(end - next, tool::difference_from_canary(memory.subspan(next, end - next)));
  };
  for (const Stretch& stretch : stretches) {
    check_gap(stretch.at);
    add(stretch.length,
        tool::difference(memory.subspan(stretch.at, stretch.length), stretch.seed, stretch.from));
  }
  check_gap(memory.size());
  return findings;
}

}  // namespace weft::perf
