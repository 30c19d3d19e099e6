/// @file
/// For the tests of programs that use Weft: engines in one process, whose rails go wrong when they
/// are told to. So a program's own recovery is tested without a fabric.
///
/// @code
/// weft::testkit::Faults faults;
/// auto pair = weft::testkit::pair({.providers = {"tcp"}}, faults).value();
/// faults.set({.drop = 1});      // nothing arrives any more, and nobody is told
/// auto transfer = pair.first.write(segment, remote, pieces, {.deadline = Deadline::in(1s)});
/// // ... the program must live with Code::timed_out ...
/// faults.clear();
/// @endcode
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <weft/engine.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>

namespace weft::testkit {
class Faults;
}

namespace weft::core {
class FaultSwitch;
EngineHooks hooks_of(const testkit::Faults& faults);
}  // namespace weft::core

namespace weft::testkit {

/// What happens to the operations that carry a rail's transfers: reads, writes and bounce buffers.
/// Signals and messages are not touched. Shares are from 0 to 1, of all operations. The same seed
/// draws the same faults from the same operations.
struct Fault {
  std::uint64_t seed = 1;
  double delay = 0;                                                  ///< The end is told later,
  std::chrono::nanoseconds delay_by = std::chrono::milliseconds(1);  ///< by up to this.
  double reorder = 0;    ///< The end is told after that of a later operation.
  double again = 0;      ///< The NIC has no room, for this operation and a few that follow.
  double refuse = 0;     ///< The NIC refuses the operation (FI_EIO): nothing is carried out.
  double fail = 0;       ///< It is carried out, and ends with an error (FI_EIO).
  double duplicate = 0;  ///< It is carried out twice.
  double drop = 0;       ///< It is never carried out, and does not end before the switch changes.
};

/// How often each fault has happened, on all rails of all engines that share the switch.
struct FaultCounts {
  std::uint64_t delayed = 0, reordered = 0, again = 0, refused = 0, failed = 0, duplicated = 0,
                dropped = 0;
};

/// A switch for the faults of one or more engines. Copies are the same switch. All calls may be
/// made from any thread, and count for operations that are posted afterwards; those that are held
/// back end then, the dropped ones with an error (FI_EIO). It may go before the engines do.
class WEFT_API Faults {
 public:
  /// Nothing goes wrong yet.
  Faults();

  /// For all rails.
  void set(const Fault& fault);
  /// For one rail, by its number in Engine::info().
  void set(std::size_t rail, const Fault& fault);
  /// The rail refuses all, as a NIC that is gone does: others take over. Over shm, memory that the
  /// peer maps (Memory::shared) keeps to one rail, and fails with it.
  void kill(std::size_t rail) { set(rail, {.refuse = 1}); }
  /// Nothing goes wrong any more.
  void clear() { set(Fault{}); }

  FaultCounts counts() const;

 private:
  friend core::EngineHooks core::hooks_of(const Faults& faults);
  std::shared_ptr<core::FaultSwitch> switch_;
};

/// Engine::open(), with that switch. Its rails carry each transfer by operations of their provider:
/// none is copied by the thread that submits it, as happens over shm otherwise.
WEFT_API Result<Engine> open(const Config& config, const Faults& faults);

/// Two engines that have met.
struct Pair {
  Engine first, second;
  Peer to_second;  ///< The second engine, as the first one sees it.
  Peer to_first;
};

/// Opens two engines with this configuration and lets them meet, on the loopback address if none is
/// given. They share the switch. Fails as Engine::open and Engine::connect do; waits 10 s at most.
WEFT_API Result<Pair> pair(const Config& config, const Faults& faults);

}  // namespace weft::testkit
