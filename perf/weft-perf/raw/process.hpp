/// @file
/// One side of a plain libfabric loop, as a process of its own.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <weft/deadline.hpp>

#include "raw/config.hpp"
#include "raw/loop.hpp"

namespace weft::perf {

/// A new process of this executable, so that the side does not meet the libfabric state,
/// environment or threads of the caller. Needs `serve_raw_side` at the start of `main`. Killed when
/// this object goes. What is asked for may take the configured timeout, besides the time of the
/// loop. Errors say which side they are of.
class RawProcess : public RawTarget {
 public:
  enum class Role : bool { target, initiator };

  /// Fails as check() does, and if no process can be started.
  static Result<std::unique_ptr<RawProcess>> start(const RawConfig& config, Role role);
  ~RawProcess() override;

  Result<nlohmann::json> open() override;
  Result<void> connect(const nlohmann::json& other) override;
  Result<double> end(std::uint64_t covered) override;
  /// Of the initiator, once both are connected.
  Result<RawResult> run();

  /// From any thread: waits for the process return as if it had ended.
  void give_up() const;

 private:
  class Child;
  explicit RawProcess(std::unique_ptr<Child> child);
  Deadline step() const;
  Result<nlohmann::json> ask(const nlohmann::json& message, Deadline deadline);
  Result<nlohmann::json> hear(Deadline deadline);

  std::unique_ptr<Child> child_;
};

/// The exit status, if this process was started as such a side.
std::optional<int> serve_raw_side(int argc, char** argv);

}  // namespace weft::perf
