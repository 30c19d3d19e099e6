// What two engines that know each other cost while nothing moves, and how long the first bytes take
// after that.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/engine.hpp>

#include "bench.hpp"
#include "protocol/must.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"
#include "shared/upkeep.hpp"

namespace {

using namespace weft;
using namespace weft::perf;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t size = 4096;
constexpr auto patience = 60s;
// By then an engine has done all that follows a meeting, and no longer looks as often as it does
// right after something came.
constexpr auto settled_after = 200ms;
/// After each idleness, however long it is.
constexpr std::size_t fewest_writes = 5;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<milliseconds::rep> gaps{0, 1, 10, 100, 1000};
  milliseconds::rep idle_ms = 3000;
  milliseconds::rep latency_ms = 4000;
  bool json = false;
};

struct Case {
  std::string provider;
  bool manual = false;
};

/// Of one gap, in microseconds.
struct Latency {
  std::size_t count = 0;
  double p50 = 0, p99 = 0, most = 0;
};

struct Measured {
  Case what;
  double seconds = 0;  ///< Of idleness.
  Upkeep initiator, target;
  std::vector<std::pair<milliseconds::rep, Latency>> latencies;  ///< By gap.
};

Deadline soon() {
  return Deadline::in(patience);
}

Config config_for(const std::string& provider) {
  Config config;
  config.providers = {provider};
  return config;
}

/// What a process has to say in a line; "error ..." if it failed.
template <typename Body>
void tell(int fd, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    write_line(fd, fmt::format("error {}", error.what()));
  }
}

void serve(const Case& what, int answer, int life) {
  tell(answer, [&] {
    Engine engine = must(Engine::open(config_for(what.provider)));
    Segment segment = must(engine.add(Memory::own(size)));
    const Grant grant = must(segment.grant({}, Rights::read_write));
    must(engine.publish("memory", grant));
    write_line(answer, engine.address());
    wait_for_end(life);
  });
}

Latency summary(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {  // the nearest rank
    const double rank = std::ceil(share * static_cast<double>(times.size()));
    return times[static_cast<std::size_t>(rank) - 1];
  };
  return {times.size(), at(0.5), at(0.99), times.back()};
}

/// Writes again and again, with nothing under way for so long before each.
Latency latency_after(Engine& engine, const Prepared& whole, milliseconds gap, milliseconds time) {
  std::vector<double> times;
  const auto until = Clock::now() + time;
  while (Clock::now() < until || times.size() < fewest_writes) {
    if (gap.count() > 0) std::this_thread::sleep_for(gap);
    const auto begin = Clock::now();
    must(must(engine.submit(whole)).wait(soon()));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return summary(std::move(times));
}

/// Says that it is idle, and measures latencies once it is told to.
void ask(const Options& options, const Case& what, const std::string& address, int go, int answer) {
  tell(answer, [&] {
    Config config = config_for(what.provider);
    config.listen = "";
    if (what.manual) config.progress = Progress::manual;
    Engine engine = must(Engine::open(config));
    const Segment segment = must(engine.add(Memory::own(size)));
    const Peer peer = must(engine.connect(address, soon()));
    const Remote remote = must(peer.lookup("memory", soon()));
    const Pair all{0, 0, size};
    const Prepared whole = must(engine.prepare(segment, remote, Direction::write, {&all, 1}));
    must(must(engine.submit(whole)).wait(soon()));
    write_line(answer, "idle");
    must(read_line(go, soon()));
    nlohmann::json latencies = nlohmann::json::array();
    for (const milliseconds::rep gap : options.gaps) {
      const auto [count, p50, p99, most] =
          latency_after(engine, whole, milliseconds(gap), milliseconds(options.latency_ms));
      latencies.push_back({gap, count, p50, p99, most});
    }
    write_line(answer, latencies.dump());
  });
}

Upkeep difference(const Upkeep& now, const Upkeep& then) {
  return {now.cpu_seconds - then.cpu_seconds, now.voluntary_waits - then.voluntary_waits};
}

Measured measure(const Options& options, const Case& what) {
  Pipe address, go, answer, life;
  const Side target([&] {
    life.close_write();
    serve(what, address.write_end(), life.read_end());
  });
  const std::string where = must(read_line(address.read_end(), soon()));
  const Side initiator([&] { ask(options, what, where, go.read_end(), answer.write_end()); });
  must(read_line(answer.read_end(), soon()));

  std::this_thread::sleep_for(settled_after);
  Measured measured{.what = what};
  const auto begin = Clock::now();
  const Upkeep initiators = upkeep_of(initiator.pid()), targets = upkeep_of(target.pid());
  std::this_thread::sleep_for(milliseconds(options.idle_ms));
  measured.initiator = difference(upkeep_of(initiator.pid()), initiators);
  measured.target = difference(upkeep_of(target.pid()), targets);
  measured.seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  write_line(go.write_end(), "go");
  milliseconds longest{0};
  for (const milliseconds::rep gap : options.gaps)
    longest += std::max(milliseconds(options.latency_ms),
                        milliseconds(gap * milliseconds::rep{fewest_writes}));
  const auto line = must(read_line(answer.read_end(), Deadline::in(longest + patience)));
  const auto latencies = nlohmann::json::parse(line);
  for (const auto& each : latencies)
    measured.latencies.push_back({each[0], {each[1], each[2], each[3], each[4]}});
  return measured;
}

const char* progress_of(const Case& what) {
  return what.manual ? "manual" : "threads";
}

nlohmann::json as_json(const Measured& measured) {
  const auto side = [&](const Upkeep& upkeep) {
    return nlohmann::json{
        {"cpu_per_second", upkeep.cpu_seconds / measured.seconds},
        {"waits_per_second", static_cast<double>(upkeep.voluntary_waits) / measured.seconds}};
  };
  nlohmann::json latencies = nlohmann::json::array();
  for (const auto& [gap, latency] : measured.latencies)
    latencies.push_back({{"idle_ms", gap},
                         {"count", latency.count},
                         {"p50_us", latency.p50},
                         {"p99_us", latency.p99},
                         {"most_us", latency.most}});
  return {{"provider", measured.what.provider},
          {"progress", progress_of(measured.what)},
          {"initiator", side(measured.initiator)},
          {"target", side(measured.target)},
          {"first_write", latencies}};
}

std::string side_text(const Upkeep& upkeep, double seconds) {
  return fmt::format("{:.3f} % of a core, {:.0f} waits/s", 100 * upkeep.cpu_seconds / seconds,
                     static_cast<double>(upkeep.voluntary_waits) / seconds);
}

void print(const Measured& measured) {
  fmt::print("{}, progress by {}\n", measured.what.provider,
             measured.what.manual ? "the caller" : "threads");
  fmt::print("  idle   initiator {}; target {}\n", side_text(measured.initiator, measured.seconds),
             side_text(measured.target, measured.seconds));
  for (const auto& [gap, latency] : measured.latencies) {
    const std::string after = gap == 0 ? "in a loop" : fmt::format("after {} ms", gap);
    fmt::print("  write  {:<14} p50 {:>7.1f} us, p99 {:>7.1f} us, most {:>7.1f} us, of {}\n", after,
               latency.p50, latency.p99, latency.most, latency.count);
  }
  std::fflush(stdout);
}

void run(const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& provider : options.providers)
    for (const bool manual : {false, true}) {
      const Measured measured = measure(options, {provider, manual});
      if (options.json)
        rows.push_back(as_json(measured));
      else
        print(measured);
    }
  if (options.json) fmt::print("{}\n", rows.dump(2));
}

}  // namespace

int weft::perf::bench::idle(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Two engines in two processes that know each other, and nothing under way: the CPU time and "
      "the waits of either process while it is idle, and the time that a write of 4 KiB takes "
      "after "
      "nothing has moved for so long. The target makes progress by threads, the initiator by "
      "threads "
      "and by the caller in turn."};
  app.option_defaults()->always_capture_default();
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "tcp, shm, efa");
  app.add_option("--after-ms", options.gaps, "Idleness before each write; 0: none")
      ->delimiter(',')
      ->check(CLI::Range(0, 10'000));
  app.add_option("--idle-ms", options.idle_ms, "How long idleness is looked at")
      ->check(CLI::Range(100, 100'000));
  app.add_option("--latency-ms", options.latency_ms, "How long writes after each idleness take")
      ->check(CLI::Range(10, 100'000));
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto code = parse(app, argc, argv)) return *code;
  run(options);
  return 0;
}
