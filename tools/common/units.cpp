#include "common/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace weft::tool {
namespace {

constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

/// How often the number before it counts; nothing for what is no unit.
std::optional<std::uint64_t> factor(std::string_view unit, Multiples multiples) {
  const std::uint64_t step = multiples == Multiples::binary ? 1024 : 1000;
  const std::string_view tail = unit.substr(unit.empty() ? 0 : 1);
  const bool bytes = multiples == Multiples::binary && (tail == "iB" || tail == "B");
  if (unit.empty() || (unit == "B" && multiples == Multiples::binary)) return 1;
  if (!tail.empty() && !bytes) return std::nullopt;
  if (unit[0] == 'K' || unit[0] == 'k') return step;
  if (unit[0] == 'M') return step * step;
  if (unit[0] == 'G') return step * step * step;
  return std::nullopt;
}

}  // namespace

std::string binary_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string bit_rate(double gbps) {
  if (!(gbps > 0)) return "speed unknown";
  return gbps < 10 ? fmt::format("{:.2g} Gb/s", gbps) : fmt::format("{:.0f} Gb/s", gbps);
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", grouped(number), thing, number == 1 ? "" : "s");
}

Result<std::uint64_t> parse_number(std::string_view text, Multiples multiples) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = factor(text.substr(static_cast<std::size_t>(end - text.data())), multiples);
  if (error != std::errc{} || !unit)
    return fail(Code::invalid_argument, fmt::format("'{}' is no number such as 64K", text));
  if (number > greatest / *unit)
    return fail(Code::invalid_argument, fmt::format("'{}' is too large", text));
  return number * *unit;
}

}  // namespace weft::tool
