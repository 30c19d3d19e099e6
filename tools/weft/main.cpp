// The weft command.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>
#include <string_view>
#include <weft/version.hpp>

#include "commands.hpp"
#include "common/interrupt.hpp"
#include "common/standard_output.hpp"
#include "console.hpp"

namespace {

using namespace weft::tool;

constexpr const char* exit_codes =
    "Exit codes:\n"
    "  0    done, and every byte was right\n"
    "  1    failed; one sentence on standard error says why\n"
    "  2    the command line is wrong\n"
    "  130  interrupted by Ctrl-C (143: terminated)\n";

struct Options {
  InfoOptions info;
  TopoOptions topo;
  ExplainOptions explain;
  DecodeOptions decode;
  PrefillOptions prefill;
  DemoOptions demo;
  NixlOptions nixl;
};

template <typename CommandOptions>
CLI::App* add_command(CLI::App& app, const char* name, const char* description,
                      const char* examples, CommandOptions& options) {
  CLI::App* command = app.add_subcommand(name, description);
  add_options(*command, options);
  command->footer(std::string("Examples:\n") + examples + "\n" + exit_codes);
  return command;
}

void describe(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
  app.get_formatter()->column_width(34);
  app.footer(std::string("Examples:\n"
                         "  weft demo                    two processes on this machine\n"
                         "  weft info                    what this machine has\n"
                         "  weft topo                    where it lies, and who serves whom\n"
                         "  weft explain                 which path a transfer would take\n"
                         "  weft nixl install            Weft as a backend of an installed NIXL\n"
                         "  weft decode --help           all about one command\n\n") +
             exit_codes);
  add_command(app, "info",
              "Shows the versions, each provider and NIC that was looked at and why it was taken "
              "or passed over, and the rails with their complete capability records.",
              "  weft info\n"
              "  weft info --json --providers tcp\n",
              options.info);
  add_command(app, "topo",
              "Shows where memory, GPUs and NICs of a machine lie, what is between them, and which "
              "NICs serve which GPU and why.",
              "  weft topo\n"
              "  weft topo --json\n"
              "  weft topo --capture here.xml\n"
              "  weft topo --xml there.xml --svg there.svg\n"
              "  weft topo --xml here.xml --peer-xml there.xml\n",
              options.topo);
  add_command(app, "explain",
              "Shows the path that a transfer would take: each hop, who moves the bytes on it, how "
              "often they are copied on either side, and why better paths are passed over. What is "
              "shown is declared by the providers, and nothing is moved.",
              "  weft explain\n"
              "  weft explain --from gpu:0 --to 10.0.0.2:7000:gpu:1 --json\n"
              "  weft explain --from node:1 --to 10.0.0.2:7000 --svg path.svg\n"
              "  weft explain --policy max-copies=0,forbid-cpu-copies\n",
              options.explain);
  add_command(app, "decode",
              "Waits for one prefill process, grants it blocks of a paged KV cache request by "
              "request, checks every byte that arrives and that nothing else was written, and "
              "ends.",
              "  weft decode --listen 127.0.0.1:7000\n"
              "  weft decode --listen 10.0.0.2:7000 --secret-file weft.secret \\\n"
              "              --model Llama-3.1-8B --block-tokens 64\n",
              options.decode);
  add_command(
      app, "prefill",
      "Fills the KV blocks of requests with a pattern that depends on every position, and "
      "writes them into the cache of a decode process, layer group by layer group.",
      "  weft prefill --peer 127.0.0.1:7000 --model Llama-3.1-8B\n"
      "  weft prefill --peer 10.0.0.2:7000 --secret-file weft.secret --model DeepSeek-V3 \\\n"
      "               --dtype fp8 --tokens 32768 --requests 100 --layer-groups 16\n",
      options.prefill);
  add_command(app, "demo",
              "Runs decode and prefill as two processes on this machine and shows what both "
              "measured.",
              "  weft demo\n"
              "  weft demo --model gpt-oss-20b --dtype fp8 --providers tcp\n"
              "  weft demo --decode-block-tokens 64 --decode-order block-major --json\n",
              options.demo);
  add_command(
      app, "nixl",
      "Makes the installed NIXL of a Python find Weft as the backend WEFT, by a link in the "
      "wheel's folder of plug-ins; shows whether it works there; takes the link back.",
      "  weft nixl install --python ~/venv\n"
      "  weft nixl status --python ~/venv --json\n"
      "  weft nixl install --as UCX       for servers that know no other name\n"
      "  weft nixl uninstall\n",
      options.nixl);
}

int dispatch(const CLI::App& app, const Options& options) {
  if (app.got_subcommand("info")) return run_info(options.info);
  if (app.got_subcommand("topo")) return run_topo(options.topo);
  if (app.got_subcommand("explain")) return run_explain(options.explain);
  if (app.got_subcommand("decode")) return run_decode(options.decode);
  if (app.got_subcommand("prefill")) return run_prefill(options.prefill);
  if (app.got_subcommand("nixl")) return run_nixl(options.nixl);
  return run_demo(options.demo);
}

/// A wrong command line may have asked for JSON all the same.
ConsoleOptions console_of(int count, char** words) {
  ConsoleOptions console;
  console.json = std::any_of(words, words + count,
                             [](const char* word) { return std::string_view(word) == "--json"; });
  return console;
}

/// CLI11 says only that a command is missing where the one given is unknown.
std::string complaint(const CLI::App& app, const CLI::ParseError& error, int count, char** words) {
  const bool named = count > 1 && words[1][0] != '-';
  const auto is_it = [&](const CLI::App* command) { return command->check_name(words[1]); };
  if (named && app.get_subcommands(is_it).empty())
    return fmt::format("there is no command '{}'", words[1]);
  return error.what();
}

std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

}  // namespace

int main(int count, char** words) {
  take_signals();
  CLI::App app("Moves KV-cache blocks from a prefill process into a decode process.", "weft");
  Options options;
  describe(app, options);
  try {
    app.parse(count, words);
    const int code = dispatch(app, options);
    const auto printed = finish_standard_output();
    if (printed || code != 0) return code;
    return end_with(command_of(app), ConsoleOptions(), printed.error());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const std::string command = command_of(app);
    return end_with(command, console_of(count, words), "invalid_argument",
                    fmt::format("{} (see weft {}--help)", complaint(app, error, count, words),
                                command.empty() ? "" : command + " "),
                    exit_usage);
  } catch (const std::bad_alloc&) {
    return end_with(command_of(app), console_of(count, words), "out_of_memory",
                    "this process may not take more memory", exit_failure);
  } catch (const std::exception& error) {
    return end_with(command_of(app), console_of(count, words), "internal", error.what(),
                    exit_failure);
  }
}
