/// @file
/// A plain libfabric loop without an engine: the baseline that Weft is compared to.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <weft/error.hpp>

#include "raw/config.hpp"

namespace weft::perf {

/// The target of a loop, wherever it runs; asked for one thing after the other.
class RawTarget {
 public:
  virtual ~RawTarget() = default;

  /// Opens its endpoints. What the initiator needs to connect to them.
  virtual Result<nlohmann::json> open() = 0;
  /// With what the initiator's open() told. Then it serves.
  virtual Result<void> connect(const nlohmann::json& initiator) = 0;
  /// Ends it; the first `covered` bytes of its memory have been moved. Its CPU time in seconds.
  virtual Result<double> end(std::uint64_t covered) = 0;
};

/// Runs the initiator as a process of this machine (see RawProcess) against that target. A stop
/// ends it and is `cancelled`.
Result<RawResult> run_raw(const RawConfig& config, RawTarget& target,
                          const std::stop_token& stop = {});

/// The same with both sides on this machine.
Result<RawResult> run_raw(const RawConfig& config, const std::stop_token& stop = {});

}  // namespace weft::perf
