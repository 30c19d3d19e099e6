// How a command ends: what it prints, and its exit code.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "options.hpp"

namespace weft::tool {

constexpr int exit_success = 0;
constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

/// One sentence with its context, for a person who does not know the codes.
std::string sentence(const Error& error);

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

/// To standard output, flushed.
void print(const std::string& text);

}  // namespace weft::tool
