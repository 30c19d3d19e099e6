// The table of commands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace weft::tool {

/// Adds each command with its options. Parsing sets `chosen` to what does its work and returns the
/// exit code.
void add_commands(CLI::App& program, std::function<int()>& chosen);

}  // namespace weft::tool
