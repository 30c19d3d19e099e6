// The weft command.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <new>
#include <string_view>
#include <weft/process.hpp>
#include <weft/version.hpp>

#include "command/ending.hpp"
#include "commands.hpp"
#include "common/descriptors.hpp"
#include "common/help.hpp"
#include "common/interrupt.hpp"
#include "common/misspelt.hpp"

namespace {

using namespace weft::tool;

/// A wrong command line may have asked for JSON all the same.
ConsoleOptions console_of(int count, char** words) {
  ConsoleOptions console;
  console.json = std::any_of(words, words + count,
                             [](const char* word) { return std::string_view(word) == "--json"; });
  return console;
}

std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name();
}

}  // namespace

int main(int count, char** words) {
  take_descriptors();
  weft::prepare_process();
  take_signals();
  CLI::App app("Moves KV-cache blocks from a prefill process into a decode process.", "weft");
  std::function<int()> chosen;
  use_wrapped_help(app);
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
  add_commands(app, chosen);
  HelpCommands help(app);
  try {
    const auto helped = help.parse(count, words);
    if (helped) print(*helped);
    const int code = helped ? exit_success : chosen();
    const auto printed = finish_standard_output();
    if (printed || code != 0) return code;
    return end_with(command_of(app), ConsoleOptions(), printed.error());
  } catch (const CLI::ParseError& error) {
    return end_with(command_of(app), console_of(count, words), "invalid_argument",
                    complaint(app, error), exit_usage);
  } catch (const std::bad_alloc&) {
    return end_with(command_of(app), console_of(count, words), "out_of_memory",
                    "this process may not take more memory", exit_failure);
  } catch (const std::exception& error) {
    return end_with(command_of(app), console_of(count, words), "internal", error.what(),
                    exit_failure);
  }
}
