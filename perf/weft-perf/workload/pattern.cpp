#include "workload/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::perf {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);
constexpr std::size_t block = 4096;  // compared at a time
constexpr std::uint64_t filled_at_once = 16 << 20;

/// Neighbouring numbers have nothing in common (the finaliser of SplitMix64).
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  return mixed(seed * 0xd1342543de82ef95 + (index + 1) * 0x9e3779b97f4a7c15);
}

/// What all of `found` should be like is in `wanted`.
void compare(std::span<const std::byte> found, std::span<const std::byte> wanted, std::uint64_t at,
             Findings& findings) {
  findings.checked += found.size();
  if (std::memcmp(found.data(), wanted.data(), found.size()) == 0) return;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    if (findings.wrong++ == 0)
      findings.first = fmt::format("byte {} is {:#04x} and should be {:#04x}", at + i,
                                   std::to_integer<int>(found[i]), std::to_integer<int>(wanted[i]));
  }
}

void check_canaries(std::span<const std::byte> memory, std::uint64_t at, Findings& findings) {
  std::array<std::byte, block> wanted;
  wanted.fill(canary);
  for (std::size_t done = 0; done < memory.size(); done += block) {
    const std::size_t length = std::min(block, memory.size() - done);
    compare(memory.subspan(done, length), std::span(wanted).first(length), at + done, findings);
  }
}

void check_stretch(std::span<const std::byte> memory, const Stretch& stretch, Findings& findings) {
  std::array<std::byte, block> wanted;
  for (std::uint64_t done = 0; done < stretch.length; done += block) {
    const std::size_t length = std::min<std::uint64_t>(block, stretch.length - done);
    const std::span expected = std::span(wanted).first(length);
    pattern(stretch.seed, stretch.from + done, expected);
    compare(memory.subspan(stretch.at + done, length), expected, stretch.at + done, findings);
  }
}

}  // namespace

void pattern(std::uint64_t seed, std::uint64_t from, std::span<std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const std::uint64_t position = from + done;
    const std::size_t skip = position % word;
    const std::size_t length = std::min(word - skip, bytes.size() - done);
    std::array<std::byte, word> whole;
    const std::uint64_t value = word_at(seed, position / word);
    std::memcpy(whole.data(), &value, word);
    std::memcpy(bytes.data() + done, whole.data() + skip, length);
    done += length;
  }
}

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
    fill_until(end, [](std::span<std::byte> gap) { std::fill(gap.begin(), gap.end(), canary); });
  };
  for (const Stretch& stretch : stretches) {
    fill_gap(stretch.at);
    fill_until(stretch.at + stretch.length, [&](std::span<std::byte> piece) {
      pattern(stretch.seed, stretch.from + (next - stretch.at), piece);
    });
  }
  fill_gap(memory.size());
}

Findings check(std::span<const std::byte> memory, std::span<const Stretch> stretches) {
  Findings findings;
  std::uint64_t next = 0;
  const auto check_gap = [&](std::uint64_t end) {
    check_canaries(memory.subspan(next, end - next), next, findings);
  };
  for (const Stretch& stretch : stretches) {
    check_gap(stretch.at);
    check_stretch(memory, stretch, findings);
    next = stretch.at + stretch.length;
  }
  check_gap(memory.size());
  return findings;
}

void add(const Findings& found, const std::string& where, Findings& sum) {
  sum.checked += found.checked;
  sum.wrong += found.wrong;
  if (sum.first.empty() && !found.first.empty()) sum.first = where + found.first;
}

}  // namespace weft::perf
