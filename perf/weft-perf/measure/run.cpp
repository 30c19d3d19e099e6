#include "measure/run.hpp"

#include <fmt/format.h>

#include <tuple>

#include "common/crew.hpp"
#include "common/memory_place.hpp"
#include "sides/local_initiator.hpp"
#include "sides/remote_initiator.hpp"

namespace weft::perf {
namespace {

double gigabytes_in(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

Clock::time_point first_start(const std::vector<Part>& parts) {
  auto first = Clock::time_point::max();
  for (const Part& part : parts) first = std::min(first, part.load.start);
  return first;
}

}  // namespace

double Share::gigabytes_per_second() const {
  return gigabytes_in(bytes, seconds);
}

double Run::gigabytes_per_second() const {
  return gigabytes_in(bytes, seconds);
}

double Run::operations_per_second() const {
  return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
}

Run run_of(const std::vector<Part>& parts, std::uint64_t asked) {
  const auto start = first_start(parts);
  Run run;
  run.ceiling_gbps = parts.front().ceiling_gbps;
  for (const Part& part : parts) {
    const double begun = seconds_between(start, part.load.start);
    run.shares.push_back({.operations = part.load.operations,
                          .bytes = part.bytes,
                          .begun = begun,
                          .seconds = part.load.seconds,
                          .clock_error = std::chrono::duration<double>(part.clock_error).count()});
    run.operations += part.load.operations;
    run.bytes += part.bytes;
    run.seconds = std::max(run.seconds, begun + part.load.seconds);
    run.cpu_seconds += part.cpu_seconds;
    run.latency.add(part.load.latency);
    run.overloaded = run.overloaded || part.load.overloaded;
    run.copies.per_byte += part.copies.per_byte * static_cast<double>(part.bytes);
    run.copies.known = run.copies.known && part.copies.known;
    for (const auto& [rail, bytes] : part.rails) run.rails[rail] += bytes;
  }
  if (run.bytes > 0) run.copies.per_byte /= static_cast<double>(run.bytes);
  run.ended_by_time = !run.overloaded && run.operations < asked;
  return run;
}

Length length_of(Length all, std::uint32_t initiator, std::uint32_t initiators) {
  const std::uint64_t rest = all.operations % initiators;
  return {all.time, all.operations / initiators + (initiator < rest ? 1 : 0)};
}

Task task_of(Point point, const RunOptions& options, std::uint32_t initiator) {
  point.work.rate /= point.initiators;
  return {std::move(point), initiator, seed_of(options.seed, initiator), options.verify};
}

bool same_engines(const Point& one, const Point& other) {
  const auto opened_for = [](const Point& of) {
    const bool messages = of.work.operation == Operation::message;
    return std::tuple(of.initiators, of.peers, messages ? of.work.size : 0,
                      tool::gpu_of(of.work.memory), tool::gpu_of(of.work.peer_memory));
  };
  return one.fabric == other.fabric && opened_for(one) == opened_for(other);
}

Result<Session> Session::open(Sides& sides, const Site& site, const Point& point,
                              const std::stop_token& stop) {
  Session session(sides, point);
  if (!session.is_this_process() && point.initiators > sides.initiators.size())
    return fail(Code::invalid_argument, fmt::format("there are no {} initiators, but {}",
                                                    point.initiators, sides.initiators.size()));
  if (point.peers > sides.targets.size())
    return fail(Code::invalid_argument,
                fmt::format("there are no {} targets, but {}", point.peers, sides.targets.size()));
  const auto addresses = session.open_targets();
  if (!addresses) return fail(addresses.error());
  if (auto opened = session.open_initiators(site, *addresses, stop); !opened)
    return fail(std::move(opened.error()));
  return session;
}

Result<std::vector<std::string>> Session::open_targets() {
  std::vector<std::string> addresses;
  for (Control& target : targets()) {
    const auto opened = target.ask("open", {{"point", point_}});
    if (!opened) return fail(opened.error());
    const auto address = value_of<std::string>(*opened, "address");
    if (!address) return fail(address.error());
    addresses.push_back(*address);
  }
  return addresses;
}

Result<void> Session::open_initiators(const Site& site, const std::vector<std::string>& addresses,
                                      const std::stop_token& stop) {
  initiators_.resize(point_.initiators);
  return all_at_once([&](std::uint32_t i) -> Result<void> {
    auto opened = is_this_process()
                      ? LocalInitiator::open(site, point_, addresses, stop)
                      : RemoteInitiator::open(sides_.initiators[i].control, point_, addresses,
                                              !sides_.initiators[i].at.empty());
    if (!opened) return fail(std::move(opened.error()));
    initiators_[i] = std::move(*opened);
    return {};
  });
}

/// Each initiator has a thread that waits for its answer; the first failure ends all waits.
Result<void> Session::all_at_once(const Step& step) {
  if (is_this_process()) return step(0);
  return tool::in_parallel(
      point_.initiators, point_.initiators,
      [&](std::uint64_t i) { return step(static_cast<std::uint32_t>(i)); },
      [&](Error failure) {
        for (OtherInitiator& other : sides_.initiators) other.control.interrupt();
        return failure;
      });
}

/// The targets first, as what they grant is what initiators look for.
Result<void> Session::prepare(const Point& point, const RunOptions& options) {
  std::vector<std::string> names;
  for (const auto& initiator : initiators_) names.push_back(initiator->name());
  const Json question{
      {"point", point}, {"seed", options.seed}, {"verify", options.verify}, {"initiators", names}};
  for (Control& target : targets())
    if (auto prepared = target.ask("prepare", question); !prepared)
      return fail(std::move(prepared.error()));
  return all_at_once(
      [&](std::uint32_t i) { return initiators_[i]->prepare(task_of(point, options, i)); });
}

/// Warms up, and measures.
Result<std::vector<Part>> Session::load(const RunOptions& options) {
  if (auto marked = mark(options.warm_up); !marked) return fail(std::move(marked.error()));
  auto warm =
      all_at_once([&](std::uint32_t i) { return initiators_[i]->warm_up(options.warm_up); });
  if (!warm) return fail(std::move(warm.error()));
  std::vector<Part> parts(initiators_.size());
  auto measured = all_at_once([&](std::uint32_t i) {
    return initiators_[i]
        ->measure(length_of(options.length, i, point_.initiators))
        .and_then([&](Part part) -> Result<void> {
          if (part.transfers.size() != point_.peers)
            return fail(Code::protocol_mismatch, "an initiator did not say what it has begun");
          parts[i] = std::move(part);
          return {};
        });
  });
  if (!measured) return fail(std::move(measured.error()));
  return parts;
}

/// Before the warm-up: engines that have just been spoken over go on polling for a while, which
/// would take cores from what is measured.
Result<void> Session::mark(Nanoseconds warm_up) {
  for (Control& target : targets())
    if (auto marked = target.ask("mark", {{"time_ns", warm_up.count()}}); !marked)
      return fail(std::move(marked.error()));
  return {};
}

/// What the targets found.
Result<void> Session::end(const std::vector<Part>& parts, Run& run) {
  for (std::size_t i = 0; i < point_.peers; ++i) {
    std::vector<std::uint64_t> transfers;
    for (const Part& part : parts) transfers.push_back(part.transfers[i]);
    const auto ended = targets()[i].ask("end", {{"transfers", transfers}}, time_to_tell);
    if (!ended) return fail(ended.error());
    const auto cpu = value_of<double>(*ended, "cpu_seconds");
    const auto found = value_of<Findings>(*ended, "findings");
    if (!cpu || !found)
      return fail(Code::protocol_mismatch, "the target did not say what it found");
    run.peer_cpu_seconds += *cpu;
    run.findings.add(*found, "at the target, ");
  }
  return {};
}

/// What the initiators found.
Result<void> Session::finish(Run& run) {
  std::vector<Findings> found(initiators_.size());
  auto finished = all_at_once([&](std::uint32_t i) {
    return initiators_[i]->finish().map([&](const Findings& findings) { found[i] = findings; });
  });
  for (std::size_t i = 0; i < found.size(); ++i)
    run.findings.add(found[i],
                     is_this_process() ? "at this side, " : fmt::format("at initiator {}, ", i));
  return finished;
}

Result<Run> Session::measure(const Point& point, const RunOptions& options) {
  if (options.length.operations > 0 && options.length.operations < point.initiators)
    return fail(Code::invalid_argument, "there are fewer operations than initiators");
  if (auto prepared = prepare(point, options); !prepared) return fail(std::move(prepared.error()));
  const auto parts = load(options);
  if (!parts) return fail(parts.error());
  Run run = run_of(*parts, options.length.operations);
  for (std::size_t i = 0; i < run.shares.size() && !is_this_process(); ++i)
    run.shares[i].at = sides_.initiators[i].at;
  if (auto ended = end(*parts, run); !ended) return fail(std::move(ended.error()));
  if (auto finished = finish(run); !finished) return fail(std::move(finished.error()));
  return run;
}

}  // namespace weft::perf
