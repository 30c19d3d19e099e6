// Keeps operations coming, and notes how long each takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "load/operations.hpp"
#include "raw/histogram.hpp"

namespace weft::perf {

/// When a run is long enough: as soon as either is reached.
struct Length {
  Nanoseconds time = std::chrono::seconds(1);
  std::uint64_t operations = 0;  ///< 0: as many as there is time for.
};

struct Load {
  std::uint64_t operations = 0;
  Clock::time_point start{};
  double seconds = 0;  ///< From then to the last end.
  Histogram latency;
  bool overloaded = false;  ///< More came by the rate than could be served.
};

/// The window is kept full: as soon as there is room for `batch` operations, as many are begun,
/// whichever of them have ended. Latency counts from right before an operation's submission to when
/// the engine tells of its end, on the engine's thread. `cancelled` soon after a stop was
/// requested.
Result<Load> closed_loop(Operations& operations, const Work& work, Length length,
                         Nanoseconds timeout, const std::stop_token& stop);

/// Operations come at `Work::rate` a second on average, independent of each other (a Poisson
/// process), and wait where the window is full. Latency counts from when one was due to begin, so
/// that what it waited for is in it. Once as many wait as come in `longest_queue`, beyond one
/// window, no more come: that is an overload, and what still waits when the time is over is not
/// carried out. Keeps a core busy.
Result<Load> open_loop(Operations& operations, const Work& work, Length length, Nanoseconds timeout,
                       std::uint64_t seed, const std::stop_token& stop,
                       std::chrono::duration<double> longest_queue = std::chrono::seconds(1));

}  // namespace weft::perf
