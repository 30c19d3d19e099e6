#include "baseline/raw_baseline.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "raw/loop.hpp"
#include "workload/region.hpp"

namespace weft::perf {
namespace {

RawOperation operation_of(Operation operation) {
  if (operation == Operation::read) return RawOperation::read;
  return operation == Operation::message ? RawOperation::message : RawOperation::write;
}

RawConfig config_of(const RawTask& task, const Carrier& carrier) {
  const Point& point = task.point;
  const Work& work = point.work;
  RawConfig config;
  config.provider = carrier.provider;
  config.nics = carrier.nics;
  config.operation = operation_of(work.operation);
  config.size = work.size;
  config.endpoints = task.endpoints;
  config.yield = task.endpoints > 1;  // Another thread that needs a core would hold up all.
  config.endpoint_window = std::uint64_t{work.window} * point.peers;
  config.window = config.endpoint_window * point.initiators;
  if (work.one_buffer) config.buffer_bytes = work.size * point.initiators * point.peers;
  config.max_bytes = std::uint64_t{1} << 50;
  const auto milliseconds = [](Nanoseconds::rep time) {
    return std::chrono::ceil<std::chrono::milliseconds>(Nanoseconds(time)).count();
  };
  config.max_ms = milliseconds(task.time_ns);
  config.timeout_ms = milliseconds(task.timeout_ns) + 2 * config.max_ms;
  config.verify = task.verify;
  config.latencies = true;
  return config;
}

/// A side's configuration, if it can take part.
Result<RawConfig> checked_config_of(const RawTask& task, const Carrier& carrier) {
  if (carrier.nics.empty() && carrier.provider != "shm")
    return fail(Code::unavailable,
                "it has no rail of the kind that the plain loop is to be beside");
  RawConfig config = config_of(task, carrier);
  if (auto checked = check(config); !checked) return fail(std::move(checked.error()));
  return check_room(memory_of(config)).map([&] { return std::move(config); });
}

}  // namespace

Result<RawResult> run_raw_baseline(Control& target, const RawTask& task, const Carrier& carrier,
                                   const std::stop_token& stop) {
  const auto config = checked_config_of(task, carrier);
  if (!config) return fail(config.error());
  // A target that has gone would not be missed before the timeout, where libfabric does not tell.
  std::stop_source over;
  const std::stop_callback asked(stop, [&] { over.request_stop(); });
  const auto watch = target.watch([over]() mutable { over.request_stop(); });
  if (!watch) return fail(watch.error());
  const auto there = [&](Json step) {
    if (step.at("step") == "open") step["of"] = task;
    return target.ask("raw", std::move(step));
  };
  auto result = run_raw(*config, there, over.get_token());
  if (result || stop.stop_requested() || !over.stop_requested()) return result;
  return fail(target.cause_of(std::move(result.error())));
}

Result<Json> RawService::answer(const Json& question, const Engine& engine) {
  const auto step = value_of<std::string>(question, "step");
  if (!step) return fail(step.error());
  if (*step == "open") return open(question, engine);
  if (process_ && (*step == "connect" || *step == "end")) return ask(question);
  return fail(Code::protocol_mismatch, fmt::format("it can't do '{}' now", *step));
}

/// All that is said of it comes from outside.
Result<Json> RawService::open(const Json& question, const Engine& engine) {
  process_.reset();
  const auto task = value_of<RawTask>(question, "of");
  if (!task) return fail(task.error());
  if (auto checked = check(task->point); !checked) return fail(std::move(checked.error()));
  for (const char* name : {"time_ns", "timeout_ns"})
    if (auto time = time_of(question.at("of"), name); !time) return fail(std::move(time.error()));
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores > 0 && task->endpoints > cores)
    return fail(Code::invalid_argument,
                fmt::format("its plain loop would poll on {} cores, and this machine has {}",
                            task->endpoints, cores));
  const auto config = checked_config_of(*task, carrier_of(engine.info(), task->kind));
  if (!config) return fail(config.error());
  auto process = RawProcess::start(*config, RawProcess::Role::target);
  if (!process) return fail(std::move(process.error()));
  process_ = std::move(*process);
  return ask({{"step", "open"}});
}

/// No step follows the last one, or one that failed.
Result<Json> RawService::ask(const Json& step) {
  const auto process = std::exchange(process_, nullptr);
  const std::stop_callback interrupt(stop_, [&] { process->give_up(); });
  auto answer = process->ask(step);
  if (answer && step.at("step") != "end") process_ = process;
  return answer;
}

}  // namespace weft::perf
