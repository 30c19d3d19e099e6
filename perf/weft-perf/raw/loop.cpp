#include "raw/loop.hpp"

#include "raw/process.hpp"

namespace weft::perf {
namespace {

using Json = nlohmann::json;

Result<Json> connect(RawProcess& initiator, const RawTarget& target) {
  auto there = target({{"step", "open"}});
  if (!there) return there;
  auto here = initiator.ask({{"step", "open"}});
  if (!here) return here;
  // What one side has opened is what the other one connects to.
  (*there)["step"] = (*here)["step"] = "connect";
  if (auto connected = target(*here); !connected) return connected;
  return initiator.ask(*there);
}

/// Where both failed, the target's reason is the better one: an initiator only misses it, and gives
/// up before the target does.
Result<RawResult> run(RawProcess& initiator, const RawTarget& target) {
  if (auto connected = connect(initiator, target); !connected)
    return fail(std::move(connected.error()));
  auto result = initiator.ask({{"step", "run"}}).map([](const Json& measured) {
    return measured.get<RawResult>();
  });
  const auto ended = target({{"step", "end"}, {"covered", result ? result->covered : 0}});
  if (!ended) return fail(ended.error());
  const auto cpu_seconds = ended->find("cpu_seconds");
  if (cpu_seconds == ended->end() || !cpu_seconds->is_number())
    return fail(Code::protocol_mismatch, "the plain loop's target does not tell its CPU time");
  if (result) result->target_cpu_seconds = cpu_seconds->get<double>();
  return result;
}

}  // namespace

Result<RawResult> run_raw(const RawConfig& config, const RawTarget& target,
                          const std::stop_token& stop) {
  const auto initiator = RawProcess::start(config, RawProcess::Role::initiator);
  if (!initiator) return fail(initiator.error());
  const std::stop_callback interrupt(stop, [&] { (*initiator)->give_up(); });
  auto result = run(**initiator, target);
  if (!result && stop.stop_requested()) return fail(Code::cancelled, "interrupted");
  return result;
}

}  // namespace weft::perf
