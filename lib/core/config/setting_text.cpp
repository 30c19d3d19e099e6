#include "config/setting_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <utility>

#include "base/named.hpp"

namespace weft::core {
namespace {

constexpr std::array progress_names = {Named<Progress>{"threads", Progress::threads},
                                       Named<Progress>{"manual", Progress::manual}};
constexpr std::array transport_names = {
    Named<TransportKind>{"automatic", TransportKind::automatic},
    Named<TransportKind>{"one_sided", TransportKind::one_sided},
    Named<TransportKind>{"bounce", TransportKind::bounce},
    Named<TransportKind>{"device_copy", TransportKind::device_copy}};
constexpr std::array truths = {Named<bool>{"true", true}, Named<bool>{"false", false},
                               Named<bool>{"1", true}, Named<bool>{"0", false}};
// Best for printing first.
constexpr std::array time_units = {
    Named<std::uint64_t>{"s", 1'000'000'000}, Named<std::uint64_t>{"ms", 1'000'000},
    Named<std::uint64_t>{"us", 1'000}, Named<std::uint64_t>{"ns", 1}};
constexpr std::array size_units = {Named<std::uint64_t>{"GiB", std::uint64_t{1} << 30},
                                   Named<std::uint64_t>{"MiB", std::uint64_t{1} << 20},
                                   Named<std::uint64_t>{"KiB", std::uint64_t{1} << 10},
                                   Named<std::uint64_t>{"", 1}};

template <typename Value>
const Value* find(std::span<const Named<Value>> table, std::string_view name) {
  for (const auto& [each, value] : table)
    if (each == name) return &value;
  return nullptr;
}

template <typename Value>
std::string choose(std::span<const Named<Value>> table, std::string_view text, Value& value) {
  const Value* found = find(table, text);
  if (found == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& each : table) names.push_back(each.first);
    return fmt::format("one of {}", fmt::join(names, ", "));
  }
  value = *found;
  return {};
}

/// A number and one of the units; false if it is none, or too large.
bool measure(std::string_view text, std::span<const Named<std::uint64_t>> units,
             std::uint64_t& value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  const std::uint64_t* unit = find(units, text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit == nullptr || number > std::numeric_limits<std::uint64_t>::max() / *unit) return false;
  value = number * *unit;
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

std::string from_text(std::string_view text, std::string& value) {
  value = text;
  return {};
}

std::string from_text(std::string_view text, bool& value) {
  return choose<bool>(truths, text, value);
}

std::string from_text(std::string_view text, std::uint64_t& value) {
  return measure(text, size_units, value) ? "" : "a number, with or without KiB, MiB or GiB";
}

std::string from_text(std::string_view text, unsigned& value) {
  std::uint64_t wide = 0;
  if (!measure(text, size_units, wide) || wide > std::numeric_limits<unsigned>::max())
    return "a number";
  value = static_cast<unsigned>(wide);
  return {};
}

std::string from_text(std::string_view text, Nanoseconds& value) {
  std::uint64_t count = 0;
  if (!measure(text, time_units, count) ||
      count > static_cast<std::uint64_t>(Nanoseconds::max().count()))
    return "a whole number with one of the units ns, us, ms, s";
  value = Nanoseconds(count);
  return {};
}

std::string from_text(std::string_view text, std::vector<std::string>& value) {
  value.clear();
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view item = trimmed(text.substr(0, comma));
    if (item.empty()) return "a list with commas between its items";
    value.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {};
}

std::string from_text(std::string_view text, Progress& value) {
  return choose<Progress>(progress_names, text, value);
}

std::string from_text(std::string_view text, TransportKind& value) {
  return choose<TransportKind>(transport_names, text, value);
}

std::string from_text(std::string_view text, Policy& value) {
  auto policy = parse_policy(text);
  if (!policy) return fmt::format("a policy ({})", policy.error().message());
  value = std::move(*policy);
  return {};
}

std::string from_text(std::string_view text, std::map<std::string, Policy>& value) {
  value.clear();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = item.rfind(':');
    const std::string_view name = trimmed(item.substr(0, colon));
    if (colon == item.npos || name.empty())
      return "policies of peers, as \"NAME: POLICY; NAME: POLICY\"";
    const std::string_view policy = trimmed(item.substr(colon + 1));
    if (auto wrong = from_text(policy, value[std::string(name)]); !wrong.empty()) return wrong;
  }
  return {};
}

std::string to_text(const std::string& value) {
  return value;
}

std::string to_text(bool value) {
  return std::string(name_of<bool>(truths, value));
}

std::string to_text(std::uint64_t value) {
  return fmt::format("{}", value);
}

std::string to_text(unsigned value) {
  return fmt::format("{}", value);
}

std::string to_text(Nanoseconds value) {
  const auto count = value.count();
  if (count > 0)
    for (const auto& [name, unit] : time_units)
      if (count % static_cast<Nanoseconds::rep>(unit) == 0)
        return fmt::format("{}{}", count / static_cast<Nanoseconds::rep>(unit), name);
  return fmt::format("{}ns", count);
}

std::string to_text(const std::vector<std::string>& value) {
  return fmt::format("{}", fmt::join(value, ","));
}

std::string to_text(Progress value) {
  return std::string(name_of<Progress>(progress_names, value));
}

std::string to_text(TransportKind value) {
  return std::string(name_of<TransportKind>(transport_names, value));
}

std::string to_text(const Policy& value) {
  return to_string(value);
}

std::string to_text(const std::map<std::string, Policy>& value) {
  std::string text;
  for (const auto& [name, policy] : value)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, to_string(policy));
  return text;
}

}  // namespace weft::core
