// Looks at a configuration before anything is opened.
#pragma once

#include <weft/engine.hpp>

#include "control/credentials.hpp"

namespace weft::core {

/// The configuration with its defaults filled in, or what is wrong with it.
Result<Config> checked_config(Config config);

CredentialFiles credential_files(const Config& config);

}  // namespace weft::core
