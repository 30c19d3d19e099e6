// One option: its row in the table (options.ini), and its field in Config.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <weft/config.hpp>

#include "config/setting_text.hpp"

namespace weft::core {

struct Option {
  const OptionInfo* info;
  /// Whether the field is not at its default.
  bool (*changed)(const Config& config);
  /// As from_text(): returns what it expected, or nothing on success.
  std::string (*parse)(std::string_view text, Config& config);
  std::string (*print)(const Config& config);
  /// "is 65, and must be from 0 to 64"; empty if the field is in its range.
  std::string (*breach)(const OptionInfo& info, const Config& config);
};

/// All of them, in the order of Config. Generated.
std::span<const Option> option_table();
/// Null if there is none of that name.
const Option* find_option(std::string_view name);
/// The option that was meant by a misspelt name; null if none has a similar one.
const OptionInfo* nearest_option(std::string_view name);
/// "from 0 to 64", "at least 1".
std::string range_text(const OptionInfo& info);

template <typename Value>
std::string breach(const OptionInfo& info, const Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    const std::string found = breach(info, value.size());
    return found.empty() ? found : "has a length that " + found;
  } else if constexpr ((std::is_integral_v<Value> && !std::is_same_v<Value, bool>) ||
                       std::is_same_v<Value, Nanoseconds>) {
    Value least = value, most = value;
    if (!info.least.empty()) std::ignore = from_text(info.least, least);
    if (!info.most.empty()) std::ignore = from_text(info.most, most);
    if (value < least || value > most)
      return fmt::format("is {}, and must be {}", to_text(value), range_text(info));
  }
  return {};
}

template <auto Field>
constexpr Option option(const OptionInfo& info) {
  return {
      &info,
      [](const Config& config) { return config.*Field != Config{}.*Field; },
      [](std::string_view text, Config& config) { return from_text(text, config.*Field); },
      [](const Config& config) { return to_text(config.*Field); },
      [](const OptionInfo& row, const Config& config) { return breach(row, config.*Field); },
  };
}

}  // namespace weft::core
