/// @file
/// A plain libfabric loop without an engine: the baseline that Weft is compared to.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <weft/error.hpp>

#include "raw/config.hpp"

namespace weft::perf {

/// Asks the target of a loop, wherever it runs, for one step after the other (see RawProcess).
using RawTarget = std::function<Result<nlohmann::json>(nlohmann::json step)>;

/// Runs the initiator as a process of this machine (see RawProcess) against that target. A stop
/// ends it and is `cancelled`.
Result<RawResult> run_raw(const RawConfig& config, const RawTarget& target,
                          const std::stop_token& stop = {});

}  // namespace weft::perf
