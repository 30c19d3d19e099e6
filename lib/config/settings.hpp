// The engine's options: from the call, the environment, a file, or as they are by default.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>
#include <weft/engine.hpp>

namespace weft::core {

/// Looks an environment variable up.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The process's, or an empty one where the call wants none.
Environment environment_for(const Config& call);

struct Settings {
  Config config;
  std::vector<Setting> list;  // all of them, in the order of Config's fields
};

/// Completes what the call leaves at its default. Fails on text that can't be read, and on what a
/// file has beyond the options.
Result<Settings> resolve_settings(const Config& call, const Environment& environment);

}  // namespace weft::core
