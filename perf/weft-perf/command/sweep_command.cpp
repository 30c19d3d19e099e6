#include "command/sweep_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <limits>
#include <map>
#include <stop_token>

#include "command/outcome.hpp"
#include "command/progress.hpp"
#include "common/console.hpp"
#include "common/interrupt.hpp"
#include "common/layout.hpp"
#include "common/local_address.hpp"
#include "common/output.hpp"
#include "compare/compare.hpp"
#include "protocol/machine_facts.hpp"
#include "protocol/started_side.hpp"
#include "report/document.hpp"
#include "report/table.hpp"
#include "report/title.hpp"

namespace weft::perf {
namespace {

/// "2026-11-27T06:52:00Z"
std::string date_of_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &parts)};
}

std::vector<std::string> names_of(const std::vector<Baseline>& baselines) {
  std::vector<std::string> names;
  for (const Baseline& baseline : baselines) names.push_back(baseline.name());
  std::sort(names.begin(), names.end());  // As in a row.
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// A sweep with all that is said about it.
class Command {
 public:
  /// `old`: what the results are compared with, if anything.
  Command(const Options& options, std::vector<Point> points, std::optional<Json> old)
      : options_(options),
        points_(std::move(points)),
        old_(std::move(old)),
        table_(points_, names_of(options.sweep.baselines),
               options.wide ? std::numeric_limits<std::size_t>::max() : tool::line_width()) {}

  int run();

 private:
  /// Against targets that are there, or that it starts as it does other initiators.
  Result<void> measure(std::vector<StartedSide>& started);
  Result<std::vector<Control>> targets(std::vector<StartedSide>& started);
  Result<std::vector<OtherInitiator>> initiators(std::vector<StartedSide>& started);
  Result<void> sweep(Sides& sides);
  Result<Control> initiator(std::uint64_t number, const std::string& at,
                            std::vector<StartedSide>& started);
  Result<Json> machines_of(Sides& sides);
  Error cause_of(Error failure, Sides& sides);
  int conclude(const Result<void>& swept, int signal);
  bool takes_standard_output() const { return options_.json == tool::standard_output; }
  bool write_results(const Json& results) const;
  int compare_with(const Json& old, const Json& results);
  void show(const PointResult& result);

  const Options& options_;
  std::vector<Point> points_;
  const std::optional<Json> old_;
  const Table table_;
  const std::string date_ = date_of_now();
  std::vector<PointResult> results_;
  std::stop_source stop_;
  bool begun_ = false;  // There is something to be said about results.
  Json machines_;
  std::size_t shown_ = 0;
};

void Command::show(const PointResult& result) {
  if (takes_standard_output()) return;
  tool::print((shown_++ == 0 ? table_.head() : "") + table_.row(result));
}

/// The first that it is asked for: a side has ears for one at a time.
Result<Json> facts_of(Control& side) {
  return side.ask("facts").map_error([](const Error& error) {
    return error.code() != Code::timed_out
               ? error
               : Error(error.code(), error.message() + "; it may be measuring for somebody else");
  });
}

/// "initiator": this one, which measures; "initiators": those elsewhere.
Result<Json> Command::machines_of(Sides& sides) {
  Json machines{{"initiator", machine_facts()}, {"targets", Json::array()}};
  for (Control& target : sides.targets) {
    auto theirs = facts_of(target);
    if (!theirs) return theirs;
    machines["targets"].push_back(theirs->value("machine", Json()));
  }
  for (OtherInitiator& other : sides.initiators) {
    if (other.at.empty()) continue;
    auto theirs = facts_of(other.control);
    if (!theirs) return theirs;
    (*theirs)["at"] = other.at;
    machines["initiators"].push_back(std::move(*theirs));
  }
  return machines;
}

/// The end of a target, where that is behind a failure.
Error Command::cause_of(Error failure, Sides& sides) {
  for (Control& target : sides.targets)
    if (failure.code() != Code::peer_down) failure = target.cause_of(std::move(failure));
  return failure;
}

Result<void> Command::sweep(Sides& sides) {
  auto machines = machines_of(sides);
  if (!machines) return fail(cause_of(std::move(machines.error()), sides));
  begun_ = true;
  machines_ = std::move(*machines);
  Progress progress(options_.progress);
  Sweep all(sides, options_.site, options_.sweep, points_);
  all.before_run = [&](const Step& step) { progress.show(step); };
  all.point_done = [&](const PointResult& result) {
    progress.wipe();
    show(result);
  };
  auto swept = all.run(stop_.get_token());
  progress.wipe();
  results_ = all.results();
  if (swept) return swept;
  for (std::size_t i = shown_; i < results_.size(); ++i)
    if (!results_[i].runs.empty()) show(results_[i]);
  if (stop_.stop_requested()) return swept;
  return fail(cause_of(std::move(swept.error()), sides));
}

int Command::conclude(const Result<void>& swept, int signal) {
  if (!begun_ && signal == 0) return end_with(swept.error());
  if (!begun_) return end_with_signal(signal);
  Ending ending;
  if (signal != 0) ending = {"interrupted", tool::signal_sentence(signal)};
  if (!swept && signal == 0) ending = {"failed", sentence(swept.error())};
  Json results = document(results_, settings_json(options_), machines_, ending);
  results["date"] = date_;
  results["command_line"] = options_.command_line;
  if (shown_ > 0) tool::print(table_.foot(results_, machines_));
  const bool written = write_results(results);
  if (signal != 0) return end_with_signal(signal);
  if (!swept) return end_with(swept.error());
  for (const PointResult& result : results_)
    if (const Findings found = summarize(result).findings; found.wrong > 0)
      return end_with(fmt::format("{} {}: {} bytes are wrong: {}", result.provider,
                                  title(result.point), found.wrong, found.first),
                      exit_failure);
  const int code = old_ ? compare_with(*old_, results) : 0;
  return code == 0 && !written ? exit_failure : code;
}

bool Command::write_results(const Json& results) const {
  if (options_.json.empty()) return true;
  const auto written = tool::write_output(options_.json, results.dump(2) + "\n");
  if (!written) say(written.error().message());
  return written.has_value();
}

int Command::compare_with(const Json& old, const Json& results) {
  const auto compared = compare(old, results, options_.threshold);
  if (!compared) return end_with(compared.error());
  (takes_standard_output() ? tool::complain : tool::print)(text_of(*compared));
  if (compared->changes.empty())
    return end_with(fmt::format("{} has none of these points", options_.compare), exit_failure);
  if (!compared->tells())
    return end_with(fmt::format("the comparison with {} tells nothing", options_.compare),
                    exit_failure);
  return compared->regressed() ? exit_regression : 0;
}

constexpr const char* loopback = "127.0.0.1";

/// Where targets of this machine listen: what the first initiator that is elsewhere can reach.
std::string host_of_targets(const std::vector<std::string>& from) {
  const auto other = std::find_if(from.begin(), from.end(), is_elsewhere);
  if (other == from.end()) return loopback;
  const std::string address = tool::local_address_towards(*other);
  if (address.empty()) return loopback;
  return address.find(':') == address.npos ? address : "[" + address + "]";
}

/// That each target and each of --from is a process of its own.
Result<void> check_apart(const Sides& sides) {
  std::map<std::string, std::string> seen;
  for (const Control& target : sides.targets)
    if (!seen.emplace(target.peer().name(), "a target").second)
      return fail(Code::invalid_argument,
                  fmt::format("two of --peer are the same process ({})", target.peer().name()));
  for (std::size_t i = 0; i < sides.initiators.size(); ++i) {
    const OtherInitiator& other = sides.initiators[i];
    if (other.at.empty()) continue;
    const auto [before, is_new] = seen.emplace(other.control.peer().name(), other.at);
    if (!is_new)
      return fail(Code::invalid_argument,
                  fmt::format("initiator {} at {} is {} already: each side is a process of its own",
                              i, other.at, before->second));
  }
  return {};
}

Result<std::vector<Control>> Command::targets(std::vector<StartedSide>& started) {
  const std::stop_token stop = stop_.get_token();
  const std::string host = host_of_targets(options_.from);
  std::vector<std::string> addresses = options_.peers;
  for (unsigned i = 0; options_.local && i < most_targets_of(options_.grid); ++i) {
    auto target = start_side("target", host, options_.site, stop);
    if (!target) return fail(std::move(target.error()));
    addresses.push_back(target->address);
    started.push_back(std::move(*target));
  }
  std::vector<Control> controls;
  for (const std::string& address : addresses) {
    auto control = Control::connect(options_.site, address, stop);
    if (!control) return fail(std::move(control.error()));
    controls.push_back(std::move(*control));
  }
  return controls;
}

/// Where it is: an address, or empty for a process that this one starts.
Result<Control> Command::initiator(std::uint64_t number, const std::string& at,
                                   std::vector<StartedSide>& started) {
  const std::stop_token stop = stop_.get_token();
  if (!at.empty()) {
    const std::string name = fmt::format("initiator {} at {}", number, at);
    auto control = Control::connect(options_.site, at, stop, name);
    if (!control)
      return fail(control.error().code(), fmt::format("{}: {}", name, control.error().message()));
    return control;
  }
  const std::string name = fmt::format("initiator {}", number);
  auto side = start_side(name, loopback, options_.site, stop);
  if (!side) return fail(std::move(side.error()));
  started.push_back(std::move(*side));
  Site site = options_.site;
  site.credentials.tls_check_host = false;  // It is at loopback, where no certificate is for.
  return Control::connect(site, started.back().address, stop, name);
}

/// None where no point has more than one, which is this process.
Result<std::vector<OtherInitiator>> Command::initiators(std::vector<StartedSide>& started) {
  const std::uint64_t most = most_initiators_of(options_.grid);
  std::vector<OtherInitiator> others;
  for (std::uint64_t i = 0; i < most && (most > 1 || !options_.from.empty()); ++i) {
    const bool elsewhere = !options_.from.empty() && is_elsewhere(options_.from[i]);
    const std::string at = elsewhere ? options_.from[i] : "";
    auto control = initiator(i, at, started);
    if (!control) return fail(std::move(control.error()));
    others.push_back({std::move(*control), at});
  }
  return others;
}

Result<void> Command::measure(std::vector<StartedSide>& started) {
  auto targets_there = targets(started);
  if (!targets_there) return fail(std::move(targets_there.error()));
  auto initiators_there = initiators(started);
  if (!initiators_there) return fail(std::move(initiators_there.error()));
  Sides sides{std::move(*targets_there), std::move(*initiators_there), options_.from.empty()};
  if (auto apart = check_apart(sides); !apart) return apart;
  const std::stop_callback interrupt(stop_.get_token(), [&] {
    for (Control& target : sides.targets) target.interrupt();
    for (OtherInitiator& other : sides.initiators) other.control.interrupt();
  });
  return sweep(sides);
}

int Command::run() {
  constexpr auto closing_time = std::chrono::seconds(10);
  constexpr auto interrupted_closing_time = std::chrono::milliseconds(200);
  std::vector<StartedSide> started;
  Result<void> swept;
  int signal = 0;
  {
    const tool::Interrupt interrupt([&] { stop_.request_stop(); });
    swept = measure(started);
    signal = interrupt.signal();
  }
  const int code = conclude(swept, signal);
  if (signal != 0)
    for (StartedSide& side : started) side.child.signal(SIGTERM);
  let_end(started, signal != 0 ? Nanoseconds(interrupted_closing_time) : closing_time);
  return code;
}

/// Before the time is spent.
void warn_of_few_repeats(const Options& options, std::size_t points) {
  const std::size_t needed = runs_needed(figures_of_a_point * points);
  if (options.sweep.repeats < needed)
    say(
        fmt::format("{} repeats can't tell whether any point of {} has changed: {} are needed "
                    "(--repeats), on both sides",
                    options.sweep.repeats, points, needed));
}

/// That the results to compare with are some that can be compared.
Result<Json> read_baseline(const Options& options) {
  auto read = read_document(options.compare);
  if (!read) return read;
  if (auto fits = compare(*read, *read, options.threshold); !fits)
    return fail(fits.error().code(), options.compare + ": " + fits.error().message());
  return check_baseline(*read, options.compare).map([&] { return std::move(*read); });
}

}  // namespace

int run_sweep(const Options& options) {
  auto points = points_of(options.grid);
  if (!points) return end_with(points.error().message(), exit_usage);
  // Before hours are spent on measuring, and before results may take its place.
  if (!options.json.empty())
    if (auto checked = tool::check_output(options.json); !checked) return end_with(checked.error());
  std::optional<Json> old;
  if (!options.compare.empty()) {
    auto read = read_baseline(options);
    if (!read) return end_with(read.error());
    old = std::move(*read);
  }
  if (old) warn_of_few_repeats(options, points->size());
  return Command(options, std::move(*points), std::move(old)).run();
}

}  // namespace weft::perf
