// Engines whose progress is their caller's, as the environment may have it.
#pragma once

#include <thread>
#include <weft/engine.hpp>

namespace weft::perf {

/// Whether nobody drives the engine's rails but its caller.
bool is_manual(const Engine& engine);

/// Drives such an engine, and no other, for as long as it lives: where no loop of a run does. The
/// engine outlives it.
class Driver {
 public:
  Driver() = default;
  explicit Driver(Engine& engine);

 private:
  std::jthread thread_;
};

}  // namespace weft::perf
