// Unknown names, and those that were probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tool {

/// The known name that fewest letters tell from `name`; empty where none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

/// That the program has no such command; empty if it has.
std::string complaint_about_command(const CLI::App& program, const std::string& name);

/// The complaint about a command line, with a word about where help is. Unknown options and
/// commands come first: all else may follow from them.
std::string complaint(const CLI::App& program, const CLI::ParseError& error);

}  // namespace weft::tool
