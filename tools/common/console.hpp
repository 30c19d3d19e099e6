// The last words of a program, and its exit codes.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::tool {

constexpr int exit_success = 0;
constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

/// One sentence with its context, for a person who does not know the codes.
std::string sentence(const Error& error);

/// To standard output, flushed.
void print(const std::string& text);
/// To standard error. Nobody can be told where that does not work.
void complain(const std::string& text);

/// Last thing in main: a full disk or a closed pipe is told by nothing else where the system takes
/// what is printed later. `unavailable`, with the system's reason.
Result<void> finish_standard_output();

}  // namespace weft::tool
