#include "console.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/child.hpp"
#include "common/interrupt.hpp"
#include "common/printable.hpp"

namespace weft::tool {

std::string sentence(const Error& error) {
  std::string text = error.message();
  if (!error.peer().empty() && text.find(error.peer()) == std::string::npos)
    text += fmt::format(" (peer {})", error.peer());
  if (!error.rail().empty() && text.find(error.rail()) == std::string::npos)
    text += fmt::format(" (rail {})", error.rail());
  return text;
}

void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

int end_with(std::string_view command, const ConsoleOptions& console, std::string_view code,
             const std::string& why, int exit_code) {
  // It may quote what came from outside.
  const std::string sentence = printable(why);
  if (console.json)
    print(nlohmann::json{{"command", command}, {"error", sentence}, {"code", code}}.dump(2) + "\n");
  if (!console.json || !console.quiet)
    fmt::print(stderr, "weft{}{}: {}\n", command.empty() ? "" : " ", command, sentence);
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
