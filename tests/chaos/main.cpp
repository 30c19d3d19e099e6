// weft-chaos: a campaign of faults against engines in many processes, from a seed.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <random>

#include "director.hpp"
#include "interrupt.hpp"
#include "node.hpp"

namespace weft::chaos {
namespace {

std::string words(const Director& director, const Violation& violation) {
  return fmt::format("VIOLATION at step {}: {}: {}\n", director.step(), violation.kind(),
                     violation.what());
}

void tell(const Director& director, const Violation& violation) {
  fmt::print("{}", words(director, violation));
  for (const std::string& line : director.history().about(violation.grant(), violation.transfer()))
    fmt::print("  {}\n", line);
}

/// 0: as it should be.
int run(const Options& options) {
  const auto start = Clock::now();
  fmt::print("weft-chaos --seed {} --carrier {} --nodes {}\n", options.seed, options.carrier,
             options.nodes);
  std::fflush(stdout);
  Director director(options);
  int status = 0;
  std::string found;
  try {
    director.run();
    status = options.caught_by.empty() ? 0 : 1;
  } catch (const Violation& violation) {
    tell(director, violation);
    found = words(director, violation);
    const auto& expected = options.caught_by;
    const bool caught =
        std::find(expected.begin(), expected.end(), violation.kind()) != expected.end();
    status = caught ? 0 : 1;
    if (!expected.empty()) fmt::print("{}\n", caught ? "caught, as it should be" : "not so");
  }
  fmt::print("{}", director.counts().words(Clock::now() - start));
  if (status != 0 && options.caught_by.empty())
    fmt::print(  // once more, for a log of which only the end is kept
        "{}again: weft-chaos --seed {} --carrier {} --nodes {} (the same decisions; what they "
        "meet is a matter of time)\n",
        found, options.seed, options.carrier, options.nodes);
  return status;
}

int main(int count, char** values) {
  if (count == 3 && std::string(values[1]) == "node") return run_node(values[2]);
  CLI::App app(
      "Random transfers, revocations, deaths and other faults between engines in several "
      "processes; all that Weft promises is checked after every step.");
  Options options;
  bool any_seed = false;
  app.add_option("--seed", options.seed, "Of all decisions")->capture_default_str();
  app.add_flag("--any-seed", any_seed, "A seed of the machine's choice, which is told");
  app.add_option("--minutes", options.minutes, "How long it goes on")->capture_default_str();
  app.add_option("--steps", options.steps, "End after so many steps instead");
  app.add_option("--nodes", options.nodes, "Processes with an engine each")
      ->check(CLI::Range(2, 32))
      ->capture_default_str();
  app.add_option("--carrier", options.carrier, "What carries the bytes; all: shm and tcp")
      ->check(CLI::IsMember({"tcp", "shm", "efa", "all"}))
      ->capture_default_str();
  app.add_option("--caught-by", options.caught_by,
                 "Succeed only if one of these kinds of violations is found")
      ->delimiter(',');
  app.add_option("--without", options.without, "Kinds of steps not to take, e.g. kill,cut")
      ->delimiter(',');
  app.add_flag("--verbose", options.verbose, "Tell every decision and what came of it");
  CLI11_PARSE(app, count, values);
  if (any_seed) options.seed = std::random_device()();
  signal(SIGPIPE, SIG_IGN);
  watch_interrupts();
  return run(options);
}

}  // namespace
}  // namespace weft::chaos

int main(int count, char** values) {
  try {
    return weft::chaos::main(count, values);
  } catch (const weft::chaos::Interrupted&) {
    fmt::print(stderr, "weft-chaos: interrupted\n");
    return 130;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-chaos: {}\n", error.what());
    return 1;
  }
}
