// The engine's options: from the call, the environment, a file, or as they are by default.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include <weft/config.hpp>

#include "config/environment.hpp"

namespace weft::core {

struct Settings {
  Config config;
  std::vector<Setting> list;  // all options, in the order of Config's fields
  std::vector<std::string> warnings;

  /// An option as its user wrote it: "WEFT_RAILS", "weft.toml:3: rails", "rails".
  std::string spelled(std::string_view option) const;
};

/// Completes what the call leaves at its default. Fails on text that can't be read, on values out
/// of their range, and on names in the file that are no options.
Result<Settings> resolve_settings(const Config& call, const Environment& environment);

}  // namespace weft::core
