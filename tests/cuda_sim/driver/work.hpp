// A piece of a stream's work, from the call that queues it to its end.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "interface/control.hpp"

namespace weft::cuda_sim {

/// Holds the simulator's mutex.
using Lock = std::unique_lock<std::mutex>;

/// Tells those who wait for it that a piece of work has ended.
struct Marker {
  bool ended = false;
  bool captured = false;  // into a graph: it never runs
};
using MarkerPtr = std::shared_ptr<Marker>;

struct Work {
  Operation operation;
  /// Runs on the stream's thread; may let go of the lock meanwhile. What it returns, if no success,
  /// breaks the context.
  std::function<Status(Lock&)> run = [](Lock&) { return success; };
  /// Whether what it waits for, other than work, has come; asked again and again. Null: nothing.
  std::function<bool()> ready;
  std::vector<MarkerPtr> after;  // runs when all these have ended

  // For the log.
  Direction direction = Direction::none;
  Address target = 0, source = 0;
  std::size_t bytes = 0;
  bool pageable = false;

  // Set when it is queued.
  std::uint64_t number = 0;
  MarkerPtr marker;
};

}  // namespace weft::cuda_sim
