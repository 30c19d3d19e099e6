// Engines whose progress is their caller's, as the environment may have it.
#pragma once

#include <thread>
#include <weft/engine.hpp>

namespace weft::perf {

/// Whether nobody drives the engine's rails but its caller.
bool is_manual(const Engine& engine);

/// Looks at such an engine's rails, one after the other, while something is waited for.
class Looks {
 public:
  explicit Looks(Engine& engine) : engine_(engine) {}
  void once();

 private:
  /// The thread that is waited for may share the core; but a yield to nobody takes as long as a
  /// look at a socket (0.6 to 0.9 us in a virtual machine).
  static constexpr unsigned looks_a_yield = 8;

  Engine& engine_;
  unsigned in_vain_ = 0;
};

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
