// Looks at a configuration before anything is opened.
#pragma once

#include <weft/engine.hpp>

namespace weft::core {

/// The configuration with its defaults filled in, or what is wrong with it.
Result<Config> checked_config(Config config);

}  // namespace weft::core
