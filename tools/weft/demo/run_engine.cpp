#include "demo/run_engine.hpp"

#include <fmt/format.h>

#include "common/interrupt.hpp"
#include "common/placed_segment.hpp"

namespace weft::tool {

int run_with_engine(std::string_view command, const ConsoleOptions& console, Config config,
                    const std::string& memory,
                    const std::function<Result<RunReport>(Engine&, std::stop_source&)>& work) {
  auto gpus = gpus_near(config, memory);
  if (!gpus) return end_with(command, console, gpus.error());
  config.gpus = std::move(*gpus);
  auto engine = Engine::open(config);
  if (!engine) return end_with(command, console, engine.error());
  std::stop_source ending;
  const Interrupt interrupt([&] {
    ending.request_stop();
    (void)engine->close(Deadline::in(closing_time));
  });

  if (!engine->metrics_address().empty())
    complain(fmt::format("weft {}: metrics at {}\n", command, engine->metrics_address()));
  const auto report = work(*engine, ending);
  if (interrupt.signal() != 0) return end_with_signal(command, console, interrupt.signal());
  if (!report) return end_with(command, console, report.error());

  print(console.json ? to_json(*report).dump(2) + "\n" : table(*report));
  if (report->problem.empty()) return exit_success;
  if (!console.json || !console.quiet)
    complain(fmt::format("weft {}: the data are wrong: {}\n", command, report->problem));
  return exit_failure;
}

}  // namespace weft::tool
