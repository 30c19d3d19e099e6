#include "command/ending.hpp"

#include <fmt/format.h>

#include "common/child.hpp"
#include "common/interrupt.hpp"
#include "common/layout.hpp"
#include "common/options.hpp"
#include "common/printable.hpp"

namespace weft::tool {

void add_console(CLI::App& command, ConsoleOptions& options, bool progress) {
  OptionGroup group(command, "Output");
  group.flag("--json", options.json, "Print one JSON document instead of text; errors too");
  group.flag("--quiet", options.quiet,
             "With --json: no sentence on standard error, where it is in the document anyway");
  command
      .add_flag_callback("--wide", never_break_lines,
                         "Do not break lines at the terminal's width, or at 100 columns")
      ->group("Output");
  if (progress) add_progress(group, options.progress);
}

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int end_with(std::string_view command, const ConsoleOptions& console, std::string_view code,
             const std::string& why, int exit_code) {
  // It may quote what came from outside.
  const std::string sentence = printable(why);
  if (console.json)
    print(nlohmann::json{{"command", command}, {"error", sentence}, {"code", code}}.dump(2) + "\n");
  if (!console.json || !console.quiet)
    complain(fmt::format("weft{}{}: {}\n", command.empty() ? "" : " ", command, sentence));
  return exit_code;
}

int end_with(std::string_view command, const ConsoleOptions& console, const Error& error) {
  return end_with(command, console, to_string(error.code()), sentence(error), exit_failure);
}

int end_with_signal(std::string_view command, const ConsoleOptions& console, int signal) {
  return end_with(command, console, "cancelled", signal_sentence(signal), signal_exit_code(signal));
}

int end_with_cause(std::string_view command, const ConsoleOptions& console, const Error& error) {
  if (error.code() != Code::cancelled) return end_with(command, console, error);
  const Descriptor signals(open_signal_descriptor());
  return end_with_signal(command, console, read_signal(signals.get()));
}

}  // namespace weft::tool
