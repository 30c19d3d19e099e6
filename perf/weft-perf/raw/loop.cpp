#include "raw/loop.hpp"

#include "raw/process.hpp"

namespace weft::perf {
namespace {

Result<void> connect(RawProcess& initiator, RawTarget& target) {
  const auto there = target.open();
  if (!there) return fail(there.error());
  const auto here = initiator.open();
  if (!here) return fail(here.error());
  if (auto connected = target.connect(*here); !connected) return connected;
  return initiator.connect(*there);
}

/// Where both failed, the target's reason is the better one: an initiator only misses it, and gives
/// up before the target does.
Result<RawResult> run(RawProcess& initiator, RawTarget& target) {
  if (auto connected = connect(initiator, target); !connected)
    return fail(std::move(connected.error()));
  auto result = initiator.run();
  const auto cpu_seconds = target.end(result ? result->covered : 0);
  if (!cpu_seconds) return fail(cpu_seconds.error());
  if (result) result->target_cpu_seconds = *cpu_seconds;
  return result;
}

}  // namespace

Result<RawResult> run_raw(const RawConfig& config, RawTarget& target, const std::stop_token& stop) {
  const auto initiator = RawProcess::start(config, RawProcess::Role::initiator);
  if (!initiator) return fail(initiator.error());
  const std::stop_callback interrupt(stop, [&] { (*initiator)->give_up(); });
  auto result = run(**initiator, target);
  if (!result && stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  return result;
}

Result<RawResult> run_raw(const RawConfig& config, const std::stop_token& stop) {
  const auto target = RawProcess::start(config, RawProcess::Role::target);
  if (!target) return fail(target.error());
  const std::stop_callback interrupt(stop, [&] { (*target)->give_up(); });
  return run_raw(config, **target, stop);
}

}  // namespace weft::perf
