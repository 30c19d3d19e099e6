// Writes over a real provider, one after the other, by a thread named "initiator", for a profiler
// to look at: it drives the engine itself, so that all of the initiator's work is there.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <string>

#include "shared/engine_loop.hpp"
#include "shared/options.hpp"

int main(int argc, char** argv) {
  weft::perf::EngineConfig config;
  config.window = 1;
  config.manual = true;
  config.time = std::chrono::seconds(3);
  CLI::App app{"Writes over a real provider by a thread named \"initiator\", for a profiler"};
  app.option_defaults()->always_capture_default();
  const CLI::AsSizeValue bytes(false);
  app.add_option("--provider", config.provider, "tcp, shm");
  app.add_option("--size", config.size, "Bytes of a write")->transform(bytes);
  weft::perf::bench::OptionGroup group(app, "Options");
  weft::perf::bench::add_time(group, config.time, "For how long");
  bool shared = false;
  app.add_flag("--shared", shared, "Memory that the other process maps, where the provider does");
  CLI11_PARSE(app, argc, argv);
  if (shared)
    config.initiator_memory =
        config.target_memory = [](std::size_t size) { return weft::Memory::shared(size); };

  const auto line = weft::perf::run_against_target(config, [&](const std::string& address) {
    ::prctl(PR_SET_NAME, "initiator");
    return weft::perf::Initiator::open(config, address)
        .and_then([&](weft::perf::Initiator initiator) { return initiator.run(config.time); })
        .map([&](const weft::perf::EngineResult& result) {
          const auto writes = static_cast<double>(result.bytes) / static_cast<double>(config.size);
          return fmt::format("{}", result.seconds / writes * 1e9);
        });
  });
  if (!line) {
    fmt::print(stderr, "weft-write-loop: {}\n", line.error().to_string());
    return 1;
  }
  fmt::print("{}\n", *line);
}
