#include "remote_initiator.hpp"

#include <fmt/format.h>

#include "local_initiator.hpp"
#include "workload.hpp"

namespace weft::perf {

Result<std::unique_ptr<Initiator>> RemoteInitiator::open(
    Control& control, const Point& point, const std::vector<std::string>& addresses) {
  std::unique_ptr<RemoteInitiator> initiator(new RemoteInitiator(control));
  const auto opened = initiator->ask("open", {{"point", point}, {"addresses", addresses}});
  if (!opened) return fail(opened.error());
  const auto name = value_of<std::string>(*opened, "name");
  const auto provider = value_of<std::string>(*opened, "provider");
  if (!name || !provider) return fail(name ? provider.error() : name.error());
  initiator->name_ = *name;
  initiator->provider_ = *provider;
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

Result<void> RemoteInitiator::prepare(const Task& task) {
  return ask("prepare", {{"of", task}}).map([](const Json&) {});
}

Result<void> RemoteInitiator::warm_up(Nanoseconds time) {
  return ask("warm up", {{"time_ns", time.count()}}, time).map([](const Json&) {});
}

Result<Part> RemoteInitiator::measure(Length length) {
  return ask_for<Part>("part", "measure",
                       {{"time_ns", length.time.count()}, {"operations", length.operations}},
                       length.time);
}

Result<Findings> RemoteInitiator::finish() {
  return ask_for<Findings>("findings", "finish", Json::object());
}

Result<Json> InitiatorService::answer(const Json& question) {
  const auto step = value_of<std::string>(question, "step");
  if (!step) return fail(step.error());
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
  if (auto checked = check(*point); !checked) return fail(std::move(checked.error()));
  auto opened = LocalInitiator::open(site_, *point, *addresses, stop_);
  if (!opened) return fail(std::move(opened.error()));
  initiator_ = std::move(*opened);
  return Json{{"name", initiator_->name()}, {"provider", initiator_->provider()}};
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
  const auto time = value_of<Nanoseconds::rep>(question, "time_ns");
  if (!time) return fail(time.error());
  return initiator_->warm_up(Nanoseconds(*time)).map([] { return Json::object(); });
}

Result<Json> InitiatorService::measure(const Json& question) {
  const auto time = value_of<Nanoseconds::rep>(question, "time_ns");
  const auto operations = value_of<std::uint64_t>(question, "operations");
  if (!time || !operations) return fail(time ? operations.error() : time.error());
  return initiator_->measure({Nanoseconds(*time), *operations}).map([](const Part& part) {
    return Json{{"part", part}};
  });
}

Result<Json> InitiatorService::finish() {
  prepared_ = false;
  return initiator_->finish().map([](const Findings& found) { return Json{{"findings", found}}; });
}

}  // namespace weft::perf
