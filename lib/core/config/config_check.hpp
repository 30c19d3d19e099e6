// The rules between options, looked at before anything is opened.
#pragma once

#include <weft/config.hpp>

#include "config/settings.hpp"
#include "control/credentials.hpp"

namespace weft::core {

/// The configuration with its rail address filled in, or what is wrong with it. The range of each
/// option was checked when the settings were resolved.
Result<Config> checked_config(const Settings& settings);

CredentialFiles credential_files(const Config& config);

}  // namespace weft::core
