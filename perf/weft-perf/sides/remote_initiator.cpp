#include "sides/remote_initiator.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "sides/local_initiator.hpp"
#include "workload/workload.hpp"

namespace weft::perf {
namespace {

/// Far from where adding times overflows.
constexpr Nanoseconds::rep latest_clock = std::numeric_limits<Nanoseconds::rep>::max() / 4;

/// Whether its figures can be those of a run in that time, by a clock that may be a bit slow.
bool plausible(const Part& part, Nanoseconds time) {
  const double most = std::chrono::duration<double>(time).count() * 1.001 + 0.001;
  const auto is_amount = [](double amount) { return std::isfinite(amount) && amount >= 0; };
  return is_amount(part.load.seconds) && part.load.seconds <= most && is_amount(part.cpu_seconds) &&
         is_amount(part.copies.per_byte) && is_amount(part.ceiling_gbps) &&
         part.load.latency.count() == part.load.operations;
}

}  // namespace

Result<std::unique_ptr<Initiator>> RemoteInitiator::open(Control& control, const Point& point,
                                                         const std::vector<std::string>& addresses,
                                                         bool own_clock) {
  std::unique_ptr<RemoteInitiator> initiator(new RemoteInitiator(control, own_clock));
  const auto opened = initiator->ask("open", {{"point", point}, {"addresses", addresses}});
  if (!opened) return fail(opened.error());
  const auto name = value_of<std::string>(*opened, "name");
  const auto carrier = value_of<Carrier>(*opened, "carrier");
  if (!name || !carrier) return fail(name ? carrier.error() : name.error());
  initiator->name_ = *name;
  initiator->carrier_ = *carrier;
  return initiator;
}

Result<Json> RemoteInitiator::ask(const std::string& step, Json details, Nanoseconds longer) {
  details["step"] = step;
  return control_.ask("initiate", std::move(details), longer);
}

template <typename Value>
Result<Value> RemoteInitiator::ask_for(const char* what, const std::string& step, Json details,
                                       Nanoseconds longer) {
  return ask(step, std::move(details), longer).and_then([&](const Json& answer) {
    return value_of<Value>(answer, what);
  });
}

/// Its clock was read somewhere between question and answer: the shortest look knows best.
Result<ClockOffset> RemoteInitiator::look_at_clock() {
  constexpr int looks = 16;
  std::optional<ClockOffset> best;
  for (int i = 0; i < looks; ++i) {
    const auto asked = Clock::now();
    const auto read = ask_for<Nanoseconds::rep>("now_ns", "clock", Json::object());
    const Nanoseconds half = (Clock::now() - asked) / 2;
    if (!read) return fail(read.error());
    if (*read < 0 || *read > latest_clock)
      return fail(Code::protocol_mismatch, "an initiator's clock shows no time");
    if (!best || half < best->error)
      best = {Nanoseconds(*read) - (asked.time_since_epoch() + half), half};
  }
  return *best;
}

Result<void> RemoteInitiator::prepare(const Task& task) {
  return ask("prepare", {{"of", task}}).map([](const Json&) {});
}

/// Clocks drift apart: they are compared last before each run.
Result<void> RemoteInitiator::warm_up(Nanoseconds time) {
  if (const auto warm = ask("warm up", {{"time_ns", time.count()}}, time); !warm)
    return fail(warm.error());
  if (!own_clock_) return {};
  return look_at_clock().map([&](const ClockOffset& offset) { clock_ = offset; });
}

Result<Part> RemoteInitiator::measure(Length length) {
  const auto asked = Clock::now();
  return ask_for<Part>("part", "measure",
                       {{"time_ns", length.time.count()}, {"operations", length.operations}},
                       length.time)
      .and_then([&](Part part) -> Result<Part> {
        if (!plausible(part, Clock::now() - asked))
          return fail(Code::protocol_mismatch, "an initiator tells of what can't have been");
        if (own_clock_)
          if (auto translated = translate(part, asked); !translated)
            return fail(std::move(translated.error()));
        return part;
      });
}

/// Its beginning, to this machine's clock.
Result<void> RemoteInitiator::translate(Part& part, Clock::time_point asked) const {
  const auto drift = std::chrono::milliseconds(1) + (Clock::now() - asked) / 1000;
  const auto earliest = asked + clock_.ahead - clock_.error - drift;
  const auto latest = Clock::now() + clock_.ahead + clock_.error + drift;
  if (part.load.start < earliest || part.load.start > latest)
    return fail(Code::protocol_mismatch, "an initiator's clock does not run as this one's");
  part.load.start -= clock_.ahead;
  part.clock_error = clock_.error;
  return {};
}

Result<Findings> RemoteInitiator::finish() {
  return ask_for<Findings>("findings", "finish", Json::object());
}

Result<Json> InitiatorService::answer(const Json& question) {
  const auto step = value_of<std::string>(question, "step");
  if (!step) return fail(step.error());
  if (*step == "clock") return Json{{"now_ns", Clock::now().time_since_epoch().count()}};
  if (*step == "open") return open(question);
  if (*step == "prepare" && initiator_) return prepare(question);
  if (*step == "warm up" && prepared_) return warm_up(question);
  if (*step == "measure" && prepared_) return measure(question);
  if (*step == "finish" && prepared_) return finish();
  return fail(Code::protocol_mismatch, fmt::format("it can't do '{}' now", *step));
}

Result<Json> InitiatorService::open(const Json& question) {
  initiator_.reset();
  prepared_ = false;
  const auto point = value_of<Point>(question, "point");
  const auto addresses = value_of<std::vector<std::string>>(question, "addresses");
  if (!point || !addresses) return fail(point ? addresses.error() : point.error());
  if (addresses->empty()) return fail(Code::invalid_argument, "it was told of no target");
  if (addresses->size() > most_targets)
    return fail(Code::invalid_argument,
                fmt::format("it was told of {} targets, and meets {} at most", addresses->size(),
                            most_targets));
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  auto opened = LocalInitiator::open(site_, *point, *addresses, stop_);
  if (!opened) return fail(std::move(opened.error()));
  initiator_ = std::move(*opened);
  return Json{{"name", initiator_->name()}, {"carrier", initiator_->carrier()}};
}

Result<Json> InitiatorService::prepare(const Json& question) {
  prepared_ = false;
  const auto task = value_of<Task>(question, "of");
  if (!task) return fail(task.error());
  if (auto checked = check(task->point); !checked) return fail(std::move(checked.error()));
  if (auto prepared = initiator_->prepare(*task); !prepared)
    return fail(std::move(prepared.error()));
  prepared_ = true;
  return Json::object();
}

Result<Json> InitiatorService::warm_up(const Json& question) {
  const auto time = time_of(question);
  if (!time) return fail(time.error());
  auto warmed = initiator_->warm_up(*time);
  prepared_ = warmed.has_value();
  return warmed.map([] { return Json::object(); });
}

Result<Json> InitiatorService::measure(const Json& question) {
  const auto time = time_of(question);
  const auto operations = value_of<std::uint64_t>(question, "operations");
  if (!time || !operations) return fail(time ? operations.error() : time.error());
  auto measured = initiator_->measure({*time, *operations});
  prepared_ = measured.has_value();
  return measured.map([](const Part& part) { return Json{{"part", part}}; });
}

Result<Json> InitiatorService::finish() {
  prepared_ = false;
  return initiator_->finish().map([](const Findings& found) { return Json{{"findings", found}}; });
}

}  // namespace weft::perf
