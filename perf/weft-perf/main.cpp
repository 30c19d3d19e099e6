// The weft-perf command.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <new>
#include <stop_token>
#include <weft/version.hpp>

#include "compare.hpp"
#include "complaint.hpp"
#include "console.hpp"
#include "curves.hpp"
#include "interrupt.hpp"
#include "local_address.hpp"
#include "machine_facts.hpp"
#include "options.hpp"
#include "plot.hpp"
#include "printable.hpp"
#include "progress.hpp"
#include "raw_process.hpp"
#include "replace_file.hpp"
#include "started_side.hpp"
#include "target.hpp"

namespace {

using namespace weft::perf;
using weft::Code;
using weft::Deadline;
using weft::Error;
using weft::fail;
using weft::Nanoseconds;
using weft::Result;
namespace tool = weft::tool;

constexpr int exit_failure = 1, exit_usage = 2, exit_regression = 3;

constexpr const char* footer =
    "A GRID is a list of numbers and ranges: 4K:64M:x2 (times 2), 1:16:+5 (plus 5), 1,2,8.\n"
    "\n"
    "Examples:\n"
    "  weft-perf --local --size 4K:64M:x4 --baseline raw,memcpy\n"
    "  weft-perf --local --provider tcp,shm --operation write,read --verify --json results.json\n"
    "  weft-perf --listen 10.0.0.2:7000 --secret-file weft.secret          on one machine\n"
    "  weft-perf --peer 10.0.0.2:7000 --secret-file weft.secret --size 16M --rails 1:8\n"
    "  weft-perf --local --rate 1000:64K --size 64K                        latency under load\n"
    "  weft-perf --local --initiators 1,2,4,8 --size 1M                    incast\n"
    "  weft-perf --local --from 10.0.0.3:7000,10.0.0.4:7000 --secret-file weft.secret\n"
    "      incast here, from two machines with weft-perf --listen\n"
    "  weft-perf --local --model Llama-3.1-8B --tokens 1K:32K --window 1\n"
    "  weft-perf plan --model Llama-3.1-8B --tokens 32K --prefill-seconds 2 --fabric results.json\n"
    "\n"
    "Exit codes:\n"
    "  0    done, and every byte that was compared was right\n"
    "  1    failed; one sentence on standard error says why\n"
    "  2    the command line is wrong\n"
    "  3    something got worse (--compare)\n"
    "  130  interrupted by Ctrl-C (143: terminated); what was measured is written\n";

void say(const std::string& sentence) {
  fmt::print(stderr, "weft-perf: {}\n", tool::printable(sentence));
}

int end_with(const std::string& sentence, int code) {
  say(sentence);
  return code;
}

int end_with(const Error& error) {
  return end_with(error.to_string(), exit_failure);
}

Result<void> announce(int fd, const std::string& address) {
  const std::string line = address + "\n";
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail(Code::invalid_argument, fmt::format("can't write to descriptor {}", fd));
  ::close(fd);
  return {};
}

int run_target(const Options& options) {
  auto target = Target::open(options.site);
  if (!target) return end_with(target.error());
  if (options.ready_fd >= 0) {
    if (auto said = announce(options.ready_fd, target->address()); !said)
      return end_with(said.error());
  } else {
    fmt::print("weft-perf: listening at {}\n", target->address());
    std::fflush(stdout);
  }
  const tool::Interrupt interrupt([&] { target->interrupt(); });
  for (;;) {
    const auto served =
        target->serve(Deadline::in(options.once ? options.site.timeout : Deadline::furthest));
    if (interrupt.signal() != 0)
      return end_with(tool::signal_sentence(interrupt.signal()),
                      tool::signal_exit_code(interrupt.signal()));
    if (options.once) return served ? 0 : end_with(served.error());
    if (!served && served.error().code() == Code::closed) return end_with(served.error());
    // One peer's failure does not concern the next.
    if (!served && served.error().code() != Code::timed_out) end_with(served.error());
  }
}

/// Whether write_results() will find its way.
Result<void> check_outputs(const Options& options) {
  const std::string json = options.json == "-" ? "" : options.json;
  for (const std::string& path : {json, options.csv, options.plot, options.html})
    if (!path.empty())
      if (auto checked = tool::check_replaceable(path); !checked) return checked;
  if (options.plot.empty() && options.html.empty()) return {};
  if (auto checked = check_drawing(picture_of(options.plot)); !checked) return checked;
  return options.html.empty() ? Result<void>() : check_drawing(Picture::svg);
}

/// Where something can't be written, says so and goes on. Whether all is written.
bool write_results(const Options& options, const Json& results,
                   const std::vector<PointResult>& points) {
  bool all = true;
  const auto written = [&](const Result<void>& result) {
    if (!result) say(result.error().to_string());
    all = all && result;
  };
  if (options.json == "-")
    fmt::print("{}\n", results.dump(2));
  else if (!options.json.empty())
    written(tool::replace_file(options.json, results.dump(2) + "\n"));
  if (!options.csv.empty())
    written(tool::replace_file(options.csv,
                               csv(points, results.at("settings"), results.at("machines"))));
  if (options.plot.empty() && options.html.empty()) return all;
  const Picture kind = picture_of(options.plot);
  auto picture = plot(points, kind);
  if (!options.plot.empty())
    written(picture.and_then(
        [&](const std::string& drawn) { return tool::replace_file(options.plot, drawn); }));
  if (options.html.empty()) return all;
  if (kind != Picture::svg) picture = plot(points, Picture::svg);
  written(picture.and_then([&](const std::string& drawn) {
    return tool::replace_file(options.html, html(points, drawn, results));
  }));
  return all;
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
      : options_(options), points_(std::move(points)), old_(std::move(old)) {}

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
  int compare_with(const Json& old, const Json& results);
  void show(const PointResult& result);

  const Options& options_;
  std::vector<Point> points_;
  const std::optional<Json> old_;
  std::vector<PointResult> results_;
  std::stop_source stop_;
  bool begun_ = false;  // There is something to be said about results.
  Json machines_;
  std::size_t shown_ = 0;
};

void Command::show(const PointResult& result) {
  if (options_.json == "-") return;
  if (shown_++ == 0) fmt::print("{}", table_head(names_of(options_.sweep.baselines)));
  fmt::print("{}", table_row(result));
  std::fflush(stdout);
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
  all.before_run = [&](const weft::perf::Step& step) { progress.show(step); };
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
  if (!begun_) return end_with(tool::signal_sentence(signal), tool::signal_exit_code(signal));
  Ending ending;
  if (signal != 0) ending = {"interrupted", tool::signal_sentence(signal)};
  if (!swept && signal == 0) ending = {"failed", swept.error().to_string()};
  const Json results = document(results_, settings_json(options_), machines_, ending);
  if (shown_ > 0) fmt::print("{}", table_foot(results_, machines_));
  const bool written = write_results(options_, results, results_);
  if (signal != 0) return end_with(ending.why, tool::signal_exit_code(signal));
  if (!swept) return end_with(swept.error());
  for (const PointResult& result : results_)
    if (const Findings found = summarize(result).findings; found.wrong > 0)
      return end_with(fmt::format("{} {}: {} bytes are wrong: {}", result.provider,
                                  title(result.point), found.wrong, found.first),
                      exit_failure);
  const int code = old_ ? compare_with(*old_, results) : 0;
  return code == 0 && !written ? exit_failure : code;
}

int Command::compare_with(const Json& old, const Json& results) {
  const auto compared = compare(old, results, options_.threshold);
  if (!compared) return end_with(compared.error());
  fmt::print(options_.json == "-" ? stderr : stdout, "{}", text_of(*compared));
  if (compared->changes.empty())
    return end_with(fmt::format("{} has none of these points", options_.compare), exit_failure);
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

int run_plan(const PlanOptions& options) {
  const auto results = read_document(options.fabric);
  if (!results) return end_with(results.error());
  const auto predictions = predict(*results, options);
  if (!predictions) return end_with(predictions.error());
  fmt::print("{}", options.json ? json_of(*predictions, options).dump(2) + "\n"
                                : text_of(*predictions, options));
  return 0;
}

/// Before the time is spent.
void warn_of_few_repeats(const Options& options, std::size_t points) {
  const std::size_t needed = runs_needed(figures_of_a_point * points);
  if (options.sweep.repeats < needed)
    say(
        fmt::format("{} repeats can't tell whether any of {} points has changed: {} are needed "
                    "(--repeats), on both sides",
                    options.sweep.repeats, points, needed));
}

int run(const Options& options) {
  if (const auto wrong = complaint(options)) return end_with(*wrong, exit_usage);
  if (options.listen) return run_target(options);
  auto points = points_of(options.grid);
  if (!points) return end_with(points.error().message(), exit_usage);
  // Before hours are spent on measuring, and before results may take its place.
  if (auto checked = check_outputs(options); !checked) return end_with(checked.error());
  std::optional<Json> old;
  if (!options.compare.empty()) {
    auto read = read_document(options.compare);
    if (!read) return end_with(read.error());
    if (auto fits = compare(*read, *read, options.threshold); !fits)
      return end_with(Error(fits.error().code(), options.compare + ": " + fits.error().message()));
    old = std::move(*read);
  }
  if (old) warn_of_few_repeats(options, points->size());
  return Command(options, std::move(*points), std::move(old)).run();
}

}  // namespace

int main(int count, char** words) {
  if (const auto status = serve_raw_side(count, words)) return *status;
  tool::take_signals();
  CLI::App app(
      "Measures what transfers between two processes get out of a fabric: bandwidth, latencies "
      "with "
      "their tail, CPU time and copies, over a grid of settings.",
      "weft-perf");
  Options options;
  add_options(app, options);
  PlanOptions plan;
  add_options(*app.add_subcommand("plan",
                                  "Predicts how long the KV cache of a request takes, and its "
                                  "share of the time to the first token, by what was measured."),
              plan);
  app.get_subcommand("plan")->parse_complete_callback([&app] {
    for (const CLI::Option* each : app.get_options())
      if (each->count() > 0)
        throw CLI::ValidationError(each->get_name(), "plan takes options of its own, after it");
  });
  app.set_version_flag("--version", WEFT_VERSION);
  app.get_formatter()->column_width(34);
  app.footer(footer);
  try {
    app.parse(count, words);
    const int code = app.got_subcommand("plan") ? run_plan(plan) : run(options);
    const auto printed = tool::finish_standard_output();
    return printed || code != 0 ? code : end_with(printed.error());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return end_with(fmt::format("{} (see weft-perf --help)", error.what()), exit_usage);
  } catch (const std::bad_alloc&) {
    return end_with("this process may not take more memory", exit_failure);
  } catch (const std::exception& error) {
    return end_with(error.what(), exit_failure);
  }
}
