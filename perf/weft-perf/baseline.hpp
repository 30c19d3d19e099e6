// What the engine is compared with, measured right before it.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "control.hpp"
#include "load.hpp"

namespace weft::perf {

struct Baseline {
  enum class Kind : std::uint8_t {
    raw,     ///< A plain libfabric loop over one endpoint; both its sides on this machine.
    memcpy,  ///< Copies from memory to memory of this machine.
    socket,  ///< A plain TCP stream to the target.
  };
  Kind kind = Kind::raw;
  unsigned threads = 1;  ///< Of memcpy.

  /// As it was given: "memcpy:4".
  std::string name() const;
};

/// "raw", "memcpy", "memcpy:4", "socket".
Result<Baseline> parse_baseline(std::string_view text);

/// Whether a baseline of that name tells how long its operations take.
bool notes_latency(std::string_view name);

struct Measured {
  double gigabytes_per_second = 0;  ///< 10^9 bytes.
  Nanoseconds p50{}, p99{};         ///< Of an operation, if notes_latency().
};

/// With the size and the window of `work`. `provider`: libfabric's name of what the point uses.
Result<Measured> measure(const Baseline& baseline, Control& control, const Site& site,
                         const Work& work, const std::string& provider, Nanoseconds time);

}  // namespace weft::perf
