// How the command ends: its exit codes, and the sentence that says why.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::perf {

constexpr int exit_failure = 1, exit_usage = 2, exit_regression = 3;

/// On standard error.
void say(const std::string& sentence);

/// Says it, and returns the code.
int end_with(const std::string& sentence, int code);
int end_with(const Error& error);
/// After a signal.
int end_with_signal(int signal);

}  // namespace weft::perf
