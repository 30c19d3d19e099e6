// The weft-perf command.
#include <fmt/format.h>

#include <new>
#include <weft/process.hpp>
#include <weft/version.hpp>

#include "command/options.hpp"
#include "command/outcome.hpp"
#include "command/sweep_command.hpp"
#include "common/console.hpp"
#include "common/descriptors.hpp"
#include "common/help.hpp"
#include "common/interrupt.hpp"
#include "common/misspelt.hpp"
#include "common/options.hpp"
#include "compare/compare.hpp"
#include "raw/process.hpp"
#include "report/document.hpp"
#include "sides/target.hpp"
#include "weights/command.hpp"
#include "weights/side.hpp"

namespace {

using namespace weft::perf;
using weft::Code;
using weft::Deadline;
using weft::fail;
using weft::Result;
namespace tool = weft::tool;

constexpr const char* footer =
    "A GRID is a list of numbers and ranges: 4K:64M:x2 (times 2), 1:16:+5 (plus 5), 1,2,8.\n"
    "\n"
    "Examples:\n"
    "  weft-perf --local --size 4K:64M:x4 --baseline raw,memcpy\n"
    "  weft-perf --local --providers tcp,shm --operation write,read --verify --json results.json\n"
    "  weft-perf --listen 10.0.0.2:7000 --secret-file weft.secret          on one machine\n"
    "  weft-perf --peer 10.0.0.2:7000 --secret-file weft.secret --size 16M --rails 1:8\n"
    "  weft-perf --local --rate 1000:64K --size 64K                        latency under load\n"
    "  weft-perf --local --initiators 1,2,4,8 --size 1M                    incast\n"
    "  weft-perf --local --from 10.0.0.3:7000,10.0.0.4:7000 --secret-file weft.secret\n"
    "      incast here, from two machines with weft-perf --listen\n"
    "  weft-perf --local --model Llama-3.1-8B --tokens 1K:32K --window 1\n"
    "  weft-perf plan --model Llama-3.1-8B --tokens 32K --prefill-seconds 2 --fabric results.json\n"
    "  weft-perf weights --config config.json --trainers fsdp=16 --ranks tp=4,replicas=4 "
    "--providers shm\n"
    "\n"
    "Exit codes:\n"
    "  0    done, and every byte that was compared was right\n"
    "  1    failed, or a comparison tells nothing; one sentence on standard error says why\n"
    "  2    the command line is wrong\n"
    "  3    something got worse (--compare)\n"
    "  130  interrupted by Ctrl-C (143: terminated); what was measured is written\n";

int run_target(const Options& options) {
  auto target = Target::open(options.site);
  if (!target) return end_with(target.error());
  if (options.ready_fd >= 0) {
    if (auto said = tool::tell_ready(options.ready_fd, target->address()); !said)
      return end_with(said.error());
  } else {
    tool::print(fmt::format("weft-perf: listening at {}\n", target->address()));
  }
  const tool::Interrupt interrupt([&] { target->interrupt(); });
  for (;;) {
    const auto served =
        target->serve(Deadline::in(options.once ? options.site.timeout : Deadline::furthest));
    if (interrupt.signal() != 0) return end_with_signal(interrupt.signal());
    if (options.once) return served ? 0 : end_with(served.error());
    if (!served && served.error().code() == Code::closed) return end_with(served.error());
    // One peer's failure does not concern the next.
    if (!served && served.error().code() != Code::timed_out) end_with(served.error());
  }
}

int run_plan(const PlanOptions& options) {
  const auto results = read_document(options.fabric);
  if (!results) return end_with(results.error());
  if (auto checked = check_baseline(*results, options.fabric); !checked)
    return end_with(checked.error());
  const auto predictions = predict(*results, options);
  if (!predictions) return end_with(predictions.error());
  tool::print(options.json ? json_of(*predictions, options).dump(2) + "\n"
                           : text_of(*predictions, options));
  return 0;
}

int run(const Options& options) {
  if (const auto wrong = usage_error(options)) return end_with(*wrong, exit_usage);
  return options.listen ? run_target(options) : run_sweep(options);
}

}  // namespace

int main(int count, char** words) {
  tool::take_descriptors();
  if (const auto status = serve_raw_side(count, words)) return *status;
  if (const auto status = serve_weights_side(count, words)) return *status;
  weft::prepare_process();
  tool::take_signals();
  CLI::App app(
      "Measures what transfers between two processes get out of a fabric: bandwidth, latencies "
      "with their tail, CPU time and copies, over a grid of settings.",
      "weft-perf");
  tool::use_wrapped_help(app);
  app.require_subcommand(0, 1);
  Options options;
  add_options(app, options);
  PlanOptions plan;
  add_options(*app.add_subcommand("plan",
                                  "Predicts how long the KV cache of a request takes, and its "
                                  "share of the time to the first token, by what was measured."),
              plan);
  WeightsOptions weights;
  add_options(*app.add_subcommand("weights",
                                  "Measures steps of new weights between processes of this "
                                  "machine, beside what weft-perf moves there at best."),
              weights);
  for (CLI::App* command : app.get_subcommands({}))
    command->parse_complete_callback([&app, command] {
      for (const CLI::Option* each : app.get_options())
        if (each->count() > 0)
          throw CLI::ValidationError(each->get_name(),
                                     command->get_name() + " takes options of its own, after it");
    });
  app.set_version_flag("--version", WEFT_VERSION);
  app.footer(footer);
  tool::HelpCommands help(app);
  try {
    options.command_line = command_line(count, words);
    const auto helped = help.parse(count, words);
    if (helped) tool::print(*helped);
    const int code = helped                          ? 0
                     : app.got_subcommand("plan")    ? run_plan(plan)
                     : app.got_subcommand("weights") ? run_weights(weights)
                                                     : run(options);
    const auto printed = tool::finish_standard_output();
    return printed || code != 0 ? code : end_with(printed.error());
  } catch (const CLI::ParseError& error) {
    return end_with(tool::complaint(app, error), exit_usage);
  } catch (const std::bad_alloc&) {
    return end_with("this process may not take more memory", exit_failure);
  } catch (const std::exception& error) {
    return end_with(error.what(), exit_failure);
  }
}
