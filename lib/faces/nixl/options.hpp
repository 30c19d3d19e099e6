// The parameters of a backend, as its user gives them.
#pragma once

#include <weft/engine.hpp>

#include "nixl/abi.hpp"

namespace weft::nixl {

struct Options {
  Config config;
  /// Go on with a libnixl of a version that was not checked.
  bool unchecked = false;
};

/// Each parameter is a field of Config by its name, as text, or one of ours: `timeout_ms`,
/// `unchecked_nixl`. An unknown one is an error; but where the plug-in stands for another one
/// (`init.type` is not WEFT) it gets that one's parameters, and ignores those with a warning.
Result<Options> read_options(const abi::InitParameters& init);

/// All options of an engine as it uses them, wherever they came from.
Config config_of(const Engine& engine);

/// Our own parameters with their defaults, for getPluginParams.
abi::Parameters own_parameters();

}  // namespace weft::nixl
