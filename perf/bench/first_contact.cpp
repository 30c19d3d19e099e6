// How long it takes until a new process has moved its first bytes: to start, to open an engine, to
// meet a peer, and to write for the first time.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <weft/engine.hpp>

#include "bench.hpp"
#include "protocol/must.hpp"
#include "report/spread.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"

namespace {

using namespace weft;
using namespace weft::perf;
using namespace weft::perf::bench;

constexpr std::size_t size = 4096;

struct Options {
  std::vector<std::string> providers{"tcp", "shm"};
  std::vector<unsigned> peers{1, 16};
  std::optional<unsigned> nics;  // each engine's, at most
  bool warm = false;             // before the first write
  unsigned repeats = 9;
  Nanoseconds timeout = std::chrono::seconds(60);
  bool json = false;
};

/// Milliseconds, in the order in which things happen.
using Figures = std::vector<std::pair<std::string, double>>;

void note(Figures& figures, const std::string& what, Nanoseconds time) {
  figures.emplace_back(what, std::chrono::duration<double, std::milli>(time).count());
}

Config config_for(const Options& options, const std::string& provider) {
  Config config;
  config.providers = {provider};
  if (options.nics) config.max_nics = *options.nics;
  return config;
}

/// A process that has an engine, and memory to write to.
void serve(const Config& config, int answer, int life) {
  try {
    Engine engine = must(Engine::open(config));
    Segment segment = must(engine.add(Memory::own(size)));
    const Grant grant = must(segment.grant({}, Rights::read_write));
    must(engine.publish("memory", grant));
    write_line(answer, engine.address());
    wait_for_end(life);
  } catch (const std::exception& error) {
    write_line(answer, fmt::format("error {}", error.what()));
  }
}

/// One engine, from its opening to its second write to the last of the peers.
Figures contact(Config config, const std::vector<std::string>& addresses, const std::string& prefix,
                bool warm, Deadline deadline) {
  Figures figures;
  config.listen = "";
  const auto begin = Clock::now();
  Engine engine = must(Engine::open(config));
  note(figures, prefix + "open", Clock::now() - begin);
  const Segment segment = must(engine.add(Memory::own(size)));
  Nanoseconds meeting{}, warming{}, first{};
  std::vector<Remote> remotes;
  const Pair whole{0, 0, size};
  const auto write = [&](const Remote& remote) {
    const auto start = Clock::now();
    must(must(engine.write(segment, remote, {&whole, 1})).wait(deadline));
    return Clock::now() - start;
  };
  for (const std::string& address : addresses) {
    const auto start = Clock::now();
    const Peer peer = must(engine.connect(address, deadline));
    remotes.push_back(must(peer.lookup("memory", deadline)));
    const auto met = Clock::now();
    meeting += met - start;
    if (warm) must(must(engine.warm(segment, remotes.back())).wait(deadline));
    warming += Clock::now() - met;
    first += write(remotes.back());
  }
  const Nanoseconds all = Clock::now() - begin;
  const auto count = static_cast<Nanoseconds::rep>(addresses.size());
  note(figures, prefix + "meet", meeting / count);
  if (warm) note(figures, prefix + "warm", warming / count);
  note(figures, prefix + "first write", first / count);
  Nanoseconds second{};
  for (const Remote& remote : remotes) second += write(remote);
  note(figures, prefix + "second write", second / count);
  note(figures, prefix + "open to all", all);
  const auto closing = Clock::now();
  must(engine.close(deadline));
  note(figures, prefix + "close", Clock::now() - closing);
  return figures;
}

/// This program, from fork to exit, when it has nothing to do with a fabric.
Nanoseconds start_of_process() {
  const auto begin = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);
    ::execl("/proc/self/exe", "weft-bench", "--list", nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child)
    throw std::runtime_error("a process could not be started");
  return Clock::now() - begin;
}

/// In processes of their own: the first engine of each finds nothing loaded.
Figures measure(const Options& options, const std::string& provider, unsigned peers) {
  const Deadline deadline = Deadline::in(options.timeout);
  const Config config = config_for(options, provider);
  Figures figures;
  note(figures, "start", start_of_process());
  Pipe life, result;
  std::vector<std::string> addresses;
  std::vector<std::unique_ptr<Side>> targets;
  for (unsigned i = 0; i < peers; ++i) {
    Pipe answer;
    targets.push_back(std::make_unique<Side>([&] {
      life.close_write();
      serve(config, answer.write_end(), life.read_end());
    }));
    addresses.push_back(must(read_line(answer.read_end(), deadline)));
  }
  const Side initiator([&] {
    try {
      Figures both = contact(config, addresses, "", options.warm, deadline);
      for (auto& again : contact(config, addresses, "again: ", options.warm, deadline))
        both.push_back(std::move(again));
      write_line(result.write_end(), nlohmann::json(both).dump());
    } catch (const std::exception& error) {
      write_line(result.write_end(), fmt::format("error {}", error.what()));
    }
  });
  const auto measured = must(read_line(result.read_end(), deadline));
  for (auto& each : nlohmann::json::parse(measured).get<Figures>())
    figures.push_back(std::move(each));
  return figures;
}

struct Case {
  std::string provider;
  unsigned peers = 0;
  std::vector<std::string> names;  // in order
  std::map<std::string, std::vector<double>> values;
};

std::vector<Case> measure_all(const Options& options) {
  std::vector<Case> cases;
  for (const std::string& provider : options.providers)
    for (const unsigned peers : options.peers) cases.push_back({provider, peers, {}, {}});
  for (unsigned round = 0; round < options.repeats; ++round)
    for (Case& each : cases)
      for (const auto& [name, value] : measure(options, each.provider, each.peers)) {
        if (round == 0) each.names.push_back(name);
        each.values[name].push_back(value);
      }
  return cases;
}

void print(const Case& measured) {
  fmt::print("{}, {} peer{}: milliseconds, median (least-greatest)\n", measured.provider,
             measured.peers, measured.peers == 1 ? "" : "s");
  for (const std::string& name : measured.names) {
    const auto [median, least, greatest] = spread_of(measured.values.at(name));
    fmt::print("  {:<20} {:>9.3f} ({:.3f}-{:.3f})\n", name, median, least, greatest);
  }
}

nlohmann::json as_json(const Case& measured) {
  nlohmann::json row = {{"provider", measured.provider}, {"peers", measured.peers}};
  for (const auto& [name, values] : measured.values) {
    const auto spread = spread_of(values);
    row[name + " ms"] = {spread.median, spread.least, spread.greatest};
  }
  return row;
}

}  // namespace

int weft::perf::bench::first_contact(int argc, char** argv) {
  Options options;
  CLI::App app{
      "How long it takes until a new process has moved its first bytes: to start, to open an "
      "engine, and, for each of its peers in turn, to meet it and write 4 KiB for the first time. "
      "'again' is the process's second engine. Peers are processes that wait already."};
  app.option_defaults()->always_capture_default();
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "tcp, shm, efa");
  add_numbers(group, "--peers", options.peers, Multiples::decimal, {1, 1000}, "Peers");
  group.number("--max-nics", options.nics, Multiples::decimal, {1, 64}, "NICs of each engine");
  add_repeats(group, options.repeats, "Rounds");
  add_timeout(group, options.timeout);
  app.add_flag("--warm", options.warm, "Make first contact (Engine::warm) before the first write");
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto code = parse(app, argc, argv)) return *code;
  const auto cases = measure_all(options);
  nlohmann::json rows = nlohmann::json::array();
  for (const Case& each : cases) {
    if (options.json)
      rows.push_back(as_json(each));
    else
      print(each);
  }
  if (options.json) fmt::print("{}\n", rows.dump(2));
  return 0;
}
