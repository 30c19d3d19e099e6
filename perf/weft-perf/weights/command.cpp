#include "weights/command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stop_token>
#include <utility>
#include <vector>

#include "command/outcome.hpp"
#include "common/child.hpp"
#include "common/console.hpp"
#include "common/helper.hpp"
#include "common/interrupt.hpp"
#include "common/names.hpp"
#include "common/options.hpp"
#include "common/output.hpp"
#include "report/spread.hpp"
#include "weights/side.hpp"

namespace weft::perf {
namespace {

using nlohmann::json;
using tool::Multiples, tool::OptionGroup;

struct Figures {
  std::vector<double> seconds;      // of each step
  std::vector<std::uint64_t> sent;  // by trainer, of one step
  std::uint64_t checked = 0, wrong = 0;
  double best_write = 0;  // bytes in a second that weft-perf moves between as many processes
};

class Group {
 public:
  Group(const WeightsOptions& options, const WeightsWorld& world, std::stop_token stop)
      : options_(options), world_(world), stop_(std::move(stop)) {}

  Result<Figures> measure() {
    if (auto begun = start(); !begun) return fail(std::move(begun.error()));
    Figures figures;
    // The first steps find memory that nobody has touched; another content proves that the last
    // ones have moved it.
    std::uint64_t step = 0;
    if (auto filled = ask(trainers_, "fill", 1); !filled) return fail(filled.error());
    for (unsigned i = 0; i < options_.sets; ++i)
      if (auto done = publish(++step, figures); !done) return fail(done.error());
    figures = {};
    if (auto filled = ask(trainers_, "fill", 2); !filled) return fail(filled.error());
    for (unsigned i = 0; i < options_.steps; ++i)
      if (auto done = publish(++step, figures); !done) return fail(done.error());
    const auto checks = ask(ranks_, "check", 2);
    if (!checks) return fail(checks.error());
    for (const json& each : *checks) {
      figures.checked += each.at("checked").get<std::uint64_t>();
      figures.wrong += each.at("wrong").get<std::uint64_t>();
    }
    return figures;
  }

 private:
  Result<void> start() {
    std::string leader;
    for (const bool trains : {true, false}) {
      auto& side = trains ? trainers_ : ranks_;
      const auto& described = trains ? world_.world.publishers : world_.world.subscribers;
      side.reserve(described.size());
      for (std::uint32_t i = 0; i < described.size(); ++i) {
        auto started = tool::Helper::start(
            described[i].name, weights_side_argument,
            {{"options", options_}, {"trains", trains}, {"number", i}, {"leader", leader}});
        if (!started) return fail(std::move(started.error()));
        side.push_back(std::move(*started));
        if (!leader.empty()) continue;
        const auto there = hear(side.back(), options_.timeout);
        if (!there) return fail(there.error());
        leader = there->at("address").get<std::string>();
      }
    }
    for (auto* side : {&trainers_, &ranks_})
      for (std::size_t i = side == &trainers_ ? 1 : 0; i < side->size(); ++i)
        if (auto there = hear((*side)[i], options_.timeout); !there) return fail(there.error());
    return {};
  }
  /// A stop ends it early.
  Result<json> hear(const tool::Helper& process, Nanoseconds patience) const {
    const std::stop_callback interrupt(stop_, [&] { process.give_up(); });
    return process.hear(Deadline::in(patience));
  }
  /// Of all at once.
  Result<std::vector<json>> ask(const std::vector<tool::Helper>& side, const char* verb,
                                std::uint64_t number) const {
    for (const tool::Helper& each : side) each.say({{"verb", verb}, {"number", number}});
    std::vector<json> answers;
    for (const tool::Helper& each : side) {
      // They give up by themselves at the timeout, and say why.
      auto heard = hear(each, options_.timeout * 2);
      if (!heard) return fail(std::move(heard.error()));
      answers.push_back(std::move(*heard));
    }
    return answers;
  }
  Result<void> publish(std::uint64_t step, Figures& figures) {
    const auto answers = ask(trainers_, "publish", step);
    if (!answers) return fail(answers.error());
    double longest = 0;
    figures.sent.clear();
    for (const json& each : *answers) {
      longest = std::max(longest, each.at("seconds").get<double>());
      figures.sent.push_back(each.at("bytes").get<std::uint64_t>());
    }
    figures.seconds.push_back(longest);
    return {};
  }

  const WeightsOptions& options_;
  const WeightsWorld& world_;
  const std::stop_token stop_;
  std::vector<tool::Helper> trainers_, ranks_;
};

std::string list_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ","));
}

/// The most that weft-perf itself moves over the provider, between one and between several pairs
/// of processes: bytes in a second.
Result<double> best_write(const WeightsOptions& options, const std::stop_token& stop) {
  constexpr auto most_time = std::chrono::minutes(2);
  auto child =
      tool::Child::start("weft-perf",
                         {"--local", "--providers", list_of(options.providers), "--memory",
                          "shared", "--initiators", "1,4", "--size", "1M,16M", "--window", "4",
                          "--time", "0.25", "--repeats", "2", "--progress", "never", "--json", "-"},
                         tool::Descriptor());
  if (!child) return fail(std::move(child.error()));
  const std::stop_callback interrupt(stop, [&] { child->signal(SIGKILL); });
  std::string text;
  const Deadline deadline = Deadline::in(most_time);
  for (pollfd waited{child->output().get(), POLLIN, 0};;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
    char buffer[65536];
    if (::poll(&waited, 1, static_cast<int>(left)) == 0)
      return fail(Code::timed_out, "weft-perf: it did not answer in time");
    const ssize_t got = ::read(waited.fd, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const json results = json::parse(text, nullptr, false);
  double best = 0;
  if (results.is_object())
    for (const json& point : results.value("points", json::array()))
      best = std::max(best, point.at("gigabytes_per_second").at("median").get<double>() * 1e9);
  if (best > 0) return best;
  return fail(Code::unavailable, "weft-perf --local, beside which steps are shown, has failed");
}

json json_of(const WeightsOptions& options, const WeightsWorld& world, const weights::Plan& plan,
             const Figures& figures) {
  return {{"format", "weft-perf weights"},
          {"options", options},
          {"model_bytes", world.bytes},
          {"arrived_bytes", plan.bytes},
          {"fan_out", plan.fan_out == weights::FanOut::chain ? "chain" : "direct"},
          {"chunks", plan.chunks},
          {"hops", plan.hops},
          {"seconds", figures.seconds},
          {"sent_bytes", figures.sent},
          {"checked_bytes", figures.checked},
          {"wrong_bytes", figures.wrong},
          {"best_write_bytes_per_second", figures.best_write}};
}

/// Empty if the best was not measured.
std::string beside_best(const Figures& figures, double bytes_per_second) {
  if (figures.best_write == 0) return {};
  return fmt::format("  weft-perf   {:.2f} GB/s at best: a step moves {:.0f} % of it\n",
                     figures.best_write / 1e9, 100 * bytes_per_second / figures.best_write);
}

std::string text_of(const WeightsOptions& options, const WeightsWorld& world,
                    const weights::Plan& plan, const Figures& figures) {
  const auto seconds = spread_of(figures.seconds);
  const double arrived = static_cast<double>(plan.bytes);
  const auto [least, most] = std::minmax_element(figures.sent.begin(), figures.sent.end());
  std::uint64_t sent = 0;
  for (const std::uint64_t each : figures.sent) sent += each;
  return fmt::format(
      "{} to {} over {}: a model of {}, of which {} arrive ({}; {}, {})\n"
      "  step        {:.3f} s ({:.3f} to {:.3f}), {}\n"
      "  rate        {:.2f} GB/s arrive ({:.2f} to {:.2f})\n"
      "{}  sent        {} by trainers, {} to {} each\n"
      "  checked     {} bytes, {} wrong\n",
      tool::counted(world.world.publishers.size(), "trainer"),
      tool::counted(world.world.subscribers.size(), "rank"), list_of(options.providers),
      tool::binary_bytes(world.bytes), tool::binary_bytes(plan.bytes),
      plan.fan_out == weights::FanOut::chain ? "chain" : "direct",
      tool::counted(plan.chunks, "chunk"), tool::counted(plan.hops, "hop"), seconds.median,
      seconds.least, seconds.greatest, tool::counted(figures.seconds.size(), "step"),
      arrived / seconds.median / 1e9, arrived / seconds.greatest / 1e9,
      arrived / seconds.least / 1e9, beside_best(figures, arrived / seconds.median),
      tool::binary_bytes(sent), tool::binary_bytes(*least), tool::binary_bytes(*most),
      tool::grouped(figures.checked), tool::grouped(figures.wrong));
}

/// What weft-perf moves is measured before and after: the better one counts.
Result<Figures> measure(const WeightsOptions& options, const WeightsWorld& world,
                        const std::stop_token& stop) {
  if (options.alone) return Group(options, world, stop).measure();
  const auto before = best_write(options, stop);
  if (!before) return fail(before.error());
  auto figures = Group(options, world, stop).measure();
  if (!figures) return figures;
  const auto after = best_write(options, stop);
  if (!after) return fail(after.error());
  figures->best_write = std::max(*before, *after);
  return figures;
}

}  // namespace

void add_options(CLI::App& app, WeightsOptions& options) {
  OptionGroup group(app, "Weights"), output(app, "Output");
  group.file("--config", options.config, "The config.json of a model")->required();
  group
      .text("--trainers", options.trainers, "LAYOUT",
            "Processes that have the weights: tp=, pp=, ep=, fsdp=, dp=, replicas=, with commas")
      ->default_str(options.trainers);
  group.text("--ranks", options.ranks, "LAYOUT", "Processes that get them, likewise")
      ->default_str(options.ranks);
  group
      .number("--bytes", options.bytes, Multiples::binary, {1},
              "Of the model: its tensors get as much shorter or longer")
      ->default_str("1G");
  group.list("--providers", options.providers, "Of all processes, as in a sweep")
      ->default_str("tcp");
  group
      .number("--sets", options.sets, Multiples::decimal, {1, 2},
              "Of each rank's memory; 1: weights are overwritten in place")
      ->default_str("2");
  group.number("--steps", options.steps, Multiples::decimal, {1, 10'000}, "That are measured")
      ->default_str("8");
  group.choice("--fan-out", options.fan_out, tool::fan_out_names, "Whether ranks pass weights on")
      ->default_str("automatic");
  group
      .number("--chunk-bytes", options.chunk_bytes, Multiples::binary, {1},
              "What a rank receives before it passes it on")
      ->default_str("256M");
  group.flag("--verify", options.verify, "Compare every transfer of every step, too");
  group.flag("--alone", options.alone, "Don't measure what weft-perf moves at best");
  tool::add_timeout(group, options.timeout);
  output.file("--json", options.json, "Write the figures there, too; -: to standard output, alone");
}

int run_weights(const WeightsOptions& options) {
  const auto world = world_of(options);
  if (!world) return end_with(world.error());
  const auto plan =
      weights::plan(world->world, {.fan_out = options.fan_out, .chunk_bytes = options.chunk_bytes});
  if (!plan) return end_with(plan.error());
  if (!options.json.empty())
    if (auto checked = tool::check_output(options.json); !checked) return end_with(checked.error());
  std::stop_source stop;
  const tool::Interrupt interrupt([&] { stop.request_stop(); });
  const auto figures = measure(options, *world, stop.get_token());
  if (interrupt.signal() != 0) return end_with_signal(interrupt.signal());
  if (!figures) return end_with(figures.error());
  if (options.json != tool::standard_output) tool::print(text_of(options, *world, *plan, *figures));
  if (!options.json.empty()) {
    const auto written =
        tool::write_output(options.json, json_of(options, *world, *plan, *figures).dump(1) + "\n");
    if (!written) return end_with(written.error());
  }
  if (figures->wrong > 0)
    return end_with(fmt::format("{} bytes are wrong", figures->wrong), exit_failure);
  return 0;
}

}  // namespace weft::perf
