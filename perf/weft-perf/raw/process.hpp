/// @file
/// One side of a plain libfabric loop, as a process of its own.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <weft/deadline.hpp>

#include "common/helper.hpp"
#include "raw/config.hpp"

namespace weft::perf {

/// A new process of this executable, so that the side does not meet the libfabric state,
/// environment or threads of the caller. Needs `serve_raw_side` at the start of `main`. Killed when
/// this object goes.
class RawProcess {
 public:
  enum class Role : bool { target, initiator };

  /// Fails as check() does, and if no process can be started.
  static Result<std::unique_ptr<RawProcess>> start(const RawConfig& config, Role role);
  ~RawProcess();

  /// The steps of a side, in this order, each a document with its name as "step", and the answers:
  ///   open     {"endpoints"}: what the other side needs to connect to them
  ///   connect  {}, to the "endpoints" of the other side; a target serves from then on
  ///   run      the RawResult; an initiator's last step
  ///   end      {"cpu_seconds"}; a target's last step, "covered": bytes that must have come
  /// Each may take the configured timeout, besides the time of the loop. Errors say which side they
  /// are of.
  Result<nlohmann::json> ask(const nlohmann::json& step);

  /// From any thread: waits for the process return as if it had ended.
  void give_up() const { helper_.give_up(); }

 private:
  RawProcess(RawConfig config, tool::Helper helper)
      : config_(std::move(config)), helper_(std::move(helper)) {}

  const RawConfig config_;
  tool::Helper helper_;
  bool finished_ = false;  // It has answered what it is asked for last.
};

/// The exit status, if this process was started as such a side.
std::optional<int> serve_raw_side(int argc, char** argv);

}  // namespace weft::perf
