/// @file
/// A stream of transfers through the engine, between two processes: what the raw loop is compared
/// to.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <weft/engine.hpp>
#include <weft/error.hpp>

namespace weft::perf {

struct EngineConfig {
  std::string provider = "tcp";  ///< "tcp" or "shm".
  bool read = false;
  std::size_t size = 1 << 20;  ///< Bytes of a transfer.
  std::uint32_t pieces = 1;    ///< Of a transfer, as long as each other, and apart from each other.
  unsigned window = 2;         ///< Transfers in flight, of each caller.
  unsigned callers = 1;        ///< Threads that submit, each into memory of its own.
  unsigned rails = 0;          ///< 0: the engine's own choice; likewise below.
  std::size_t chunk = 0;
  std::size_t rail_window = 0;
  bool manual = false;                                ///< The initiator polls by itself.
  Nanoseconds time = std::chrono::milliseconds(500);  ///< Measured; a fifth of it warms up before.
  Nanoseconds timeout = std::chrono::seconds(30);
  Nanoseconds ttl = unlimited;  ///< Of the target's grant.
  TransportKind transport = TransportKind::automatic;
  /// The memory of each side, of so many bytes; called in that side's process.
  std::function<Result<Memory>(std::size_t)> target_memory = Memory::own;
  std::function<Result<Memory>(std::size_t)> initiator_memory = Memory::own;
  /// How the initiator's engine is opened.
  std::function<Result<Engine>(const Config&)> open = Engine::open;
};

struct EngineResult {
  std::uint64_t bytes = 0;
  double seconds = 0;
  double gigabytes_per_second = 0;  ///< 10^9 bytes.
  /// CPU time of the initiator's process. What the other side spent is not in it.
  double cpu_seconds = 0;
};

/// Runs the target in a child process and the initiator in another. The calling process must not
/// have threads or open engines: it forks.
Result<EngineResult> run_engine(const EngineConfig& config);

/// The initiator's side of it: an engine with everything that it takes to move.
class Initiator {
 public:
  /// To the target at that address.
  static Result<Initiator> open(const EngineConfig& config, const std::string& address);
  /// Keeps transfers in flight for that long.
  Result<EngineResult> run(Nanoseconds time);

 private:
  Initiator(EngineConfig config, Engine engine, Segment segment, Prepared parts)
      : config_(std::move(config)),
        engine_(std::move(engine)),
        segment_(std::move(segment)),
        parts_(std::move(parts)) {}

  EngineConfig config_;
  Engine engine_;
  Segment segment_;
  Prepared parts_;
};

/// Runs the target in a child process and `initiator` in another, with the target's address; what
/// that returns must fit a line. The calling process must not have threads or open engines.
Result<std::string> run_against_target(
    const EngineConfig& config,
    const std::function<Result<std::string>(const std::string& address)>& initiator);

}  // namespace weft::perf
