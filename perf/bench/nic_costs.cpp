// What it costs to use many NICs: to open an engine over them, to register memory with all of them,
// and to meet another engine that has as many.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "bench.hpp"
#include "report/spread.hpp"
#include "shared/holdings.hpp"
#include "shared/options.hpp"
#include "shared/sides.hpp"

namespace {

using weft::Code;
using weft::Deadline;
using weft::Engine;
using weft::Result;
using weft::perf::Holdings;
using weft::perf::holdings;
using weft::perf::Pipe;
using weft::perf::Side;

constexpr double mebibyte = 1 << 20;

struct Options {
  std::vector<std::string> providers{"efa"};
  std::vector<unsigned> nics{1, 4, 16, 32};
  std::vector<std::size_t> segments{std::size_t{64} << 20, std::size_t{1} << 30};
  unsigned repeats = 7;
  weft::Nanoseconds timeout = std::chrono::seconds(120);
  bool json = false;
};

/// By name, e.g. "open ms".
using Figures = std::map<std::string, double>;

/// Returns what `work` does, and notes its time in milliseconds.
auto timed(Figures& figures, const std::string& what, auto&& work) {
  const auto begin = weft::Clock::now();
  auto result = work();
  const std::chrono::duration<double, std::milli> time = weft::Clock::now() - begin;
  figures[what + " ms"] = time.count();
  return result;
}

void note_added(Figures& figures, const std::string& by, const Holdings& before) {
  const Holdings after = holdings();
  const auto added = [](std::size_t now, std::size_t then) {
    return static_cast<double>(now) - static_cast<double>(then);
  };
  figures[by + " MiB"] = added(after.resident, before.resident) / mebibyte;
  figures[by + " pinned MiB"] = added(after.pinned, before.pinned) / mebibyte;
  figures[by + " descriptors"] = added(after.descriptors, before.descriptors);
  figures[by + " threads"] = added(after.threads, before.threads);
}

Result<Engine> open_over(const Options& options, unsigned nics) {
  weft::Config config;
  config.providers = options.providers;
  config.max_nics = nics;
  config.rails = 1;
  auto engine = Engine::open(config);
  if (!engine) return engine;
  const std::size_t opened = engine->info().rails.size();
  if (opened == nics) return engine;
  return weft::fail(Code::unavailable,
                    fmt::format("{} NICs were asked for, and {} are there", nics, opened));
}

std::string name_of(std::size_t segment) {
  return fmt::format("{} MiB", segment >> 20);
}

/// Memory of the application's, whose pages are there already.
Result<void> measure_segment(Engine& engine, std::size_t size, Deadline deadline,
                             Figures& figures) {
  std::vector<std::byte> memory(size, std::byte{1});
  const std::string name = name_of(size);
  const Holdings before = holdings();
  auto segment = timed(figures, name + " add",
                       [&] { return engine.add(weft::Memory::adopt(memory.data(), size)); });
  if (!segment) return weft::fail(std::move(segment.error()));
  auto grant =
      timed(figures, name + " grant", [&] { return segment->grant({}, weft::Rights::read_write); });
  if (!grant) return weft::fail(std::move(grant.error()));
  note_added(figures, name, before);
  return timed(figures, name + " release", [&] { return segment->release(deadline); });
}

Result<Figures> measure(const Options& options, unsigned nics, const std::string& peer,
                        Deadline deadline) {
  Figures figures;
  const Holdings before = holdings();
  auto engine = timed(figures, "open", [&] { return open_over(options, nics); });
  if (!engine) return weft::fail(std::move(engine.error()));
  note_added(figures, "open", before);
  for (const std::size_t size : options.segments)
    if (auto measured = measure_segment(*engine, size, deadline, figures); !measured)
      return weft::fail(std::move(measured.error()));
  const Holdings alone = holdings();
  auto met = timed(figures, "meet", [&] { return engine->connect(peer, deadline); });
  if (!met) return weft::fail(std::move(met.error()));
  note_added(figures, "meet", alone);
  auto closed = timed(figures, "close", [&] { return engine->close(deadline); });
  if (!closed) return weft::fail(std::move(closed.error()));
  return figures;
}

/// An engine to be met, which lives until `life` is closed.
void serve(const Options& options, unsigned nics, int answer, int life) {
  const auto engine = open_over(options, nics);
  weft::perf::write_line(answer,
                         engine ? engine->address() : "error " + engine.error().to_string());
  weft::perf::wait_for_end(life);
}

/// In processes of their own, so that nothing is left of the round before.
Result<Figures> measure_anew(const Options& options, unsigned nics) {
  const Deadline deadline = Deadline::in(options.timeout);
  Pipe answer, life, result;
  const Side serving([&] {
    life.close_write();
    serve(options, nics, answer.write_end(), life.read_end());
  });
  auto address = weft::perf::read_line(answer.read_end(), deadline);
  if (!address) return weft::fail(std::move(address.error()));
  const Side measuring([&] {
    const auto figures = measure(options, nics, *address, deadline);
    weft::perf::write_line(result.write_end(), figures ? nlohmann::json(*figures).dump()
                                                       : "error " + figures.error().to_string());
  });
  return weft::perf::read_line(result.read_end(), deadline).map([](const std::string& line) {
    return nlohmann::json::parse(line).get<Figures>();
  });
}

/// By NICs, then by name: a figure for each round.
using Rounds = std::map<unsigned, std::map<std::string, std::vector<double>>>;

/// The numbers of NICs take turns, so that drift of the machine hits all alike.
Result<Rounds> measure_all(const Options& options) {
  Rounds rounds;
  for (unsigned round = 0; round < options.repeats; ++round)
    for (const unsigned nics : options.nics) {
      auto figures = measure_anew(options, nics);
      if (!figures) return weft::fail(std::move(figures.error()));
      for (const auto& [name, value] : *figures) rounds[nics][name].push_back(value);
    }
  return rounds;
}

nlohmann::json as_json(const Rounds& rounds) {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [nics, figures] : rounds) {
    nlohmann::json row = {{"nics", nics}};
    for (const auto& [name, values] : figures) {
      const auto spread = weft::perf::spread_of(values);
      row[name] = {spread.median, spread.least, spread.greatest};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_table(const Rounds& rounds, const std::vector<std::string>& columns) {
  fmt::print("{:>4}", "NICs");
  for (const std::string& column : columns) fmt::print("  {:>20}", column);
  fmt::print("\n");
  for (const auto& [nics, figures] : rounds) {
    fmt::print("{:>4}", nics);
    for (const std::string& column : columns) {
      const auto [median, least, greatest] = weft::perf::spread_of(figures.at(column));
      fmt::print("  {:>20}", fmt::format("{:.4g} ({:.3g}-{:.3g})", median, least, greatest));
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

void print(const Options& options, const Rounds& rounds) {
  print_table(rounds,
              {"open ms", "open MiB", "open pinned MiB", "open descriptors", "open threads"});
  print_table(rounds, {"meet ms", "meet MiB", "meet descriptors", "close ms"});
  for (const std::size_t size : options.segments) {
    const std::string name = name_of(size);
    print_table(rounds,
                {name + " add ms", name + " grant ms", name + " release ms", name + " MiB"});
  }
}

}  // namespace

int weft::perf::bench::nic_costs(int argc, char** argv) {
  Options options;
  CLI::App app{
      "What it costs to use many NICs: to open an engine, to register a segment, to meet another "
      "engine. Each figure is the median (least-greatest) of rounds in fresh processes; memory is "
      "what became resident."};
  app.option_defaults()->always_capture_default();
  OptionGroup group(app, "Options");
  add_providers(group, options.providers, "Providers to use, best first");
  add_numbers(group, "--max-nics", options.nics, Multiples::decimal, {1, 64}, "NICs");
  add_numbers(group, "--segment", options.segments, Multiples::binary, {1}, "Bytes of a segment");
  add_repeats(group, options.repeats);
  add_timeout(group, options.timeout);
  app.add_flag("--json", options.json, "Print JSON");
  if (const auto code = parse(app, argc, argv)) return *code;

  const auto rounds = measure_all(options);
  if (!rounds) {
    fmt::print(stderr, "weft-bench nic-costs: {}\n", rounds.error().to_string());
    return 1;
  }
  if (options.json)
    fmt::print("{}\n", as_json(*rounds).dump(2));
  else
    print(options, *rounds);
  return 0;
}
