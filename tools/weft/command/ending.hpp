// How a command talks to people and programs, and how it ends.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "common/console.hpp"

namespace weft::tool {

struct ConsoleOptions {
  bool json = false;
  bool quiet = false;  ///< With --json: errors go to standard output alone.
  std::string progress = "auto";
};

/// `progress`: whether the command shows any.
void add_console(CLI::App& command, ConsoleOptions& options, bool progress);

/// A document on several lines. Text from outside is escaped down to ASCII; what is no text in it
/// is replaced.
std::string dump(const nlohmann::ordered_json& json);

/// Says why a command ends early, and returns `exit_code`. With JSON also {"error": ...} on
/// standard output.
int end_with(std::string_view command, const ConsoleOptions& console, std::string_view code,
             const std::string& sentence, int exit_code);
int end_with(std::string_view command, const ConsoleOptions& console, const Error& error);
/// After a signal.
int end_with_signal(std::string_view command, const ConsoleOptions& console, int signal);
/// Where another program has given no answer: for a reason, or for a signal that came meanwhile and
/// can still be read.
int end_with_cause(std::string_view command, const ConsoleOptions& console, const Error& error);

}  // namespace weft::tool
