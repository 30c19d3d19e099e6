#include "common/misspelt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/edit_distance.hpp"
#include "common/help.hpp"

namespace weft::tool {
namespace {

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string meant(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

/// The part of the command line that nothing was there for.
std::string first_unknown(const CLI::App& program) {
  const auto left = program.remaining(true);
  return left.empty() ? "" : left.front();
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& each : known) {
    // One that was cut short is near, too.
    const bool begins = name.size() > 3 && each.starts_with(name);
    const std::size_t far = begins ? 1 : core::edit_distance(name, each);
    if (far >= least) continue;
    least = far;
    best = each;
  }
  return best;
}

std::string complaint_about_command(const CLI::App& program, const std::string& name) {
  const auto known = command_names(program);
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  return fmt::format("there is no command '{}'{}", name, meant(name, known));
}

std::string complaint(const CLI::App& program, const CLI::ParseError& error) {
  const auto chosen = program.get_subcommands();
  const CLI::App& command = chosen.empty() ? program : *chosen.front();
  const std::string name =
      chosen.empty() ? program.get_name() : program.get_name() + " " + command.get_name();
  std::string unknown = first_unknown(program);
  unknown = unknown.substr(0, unknown.find('='));
  std::string text = error.what();
  // CLI11 counts the values.
  if (const auto at = text.find(": At Most 1 required"); at != text.npos)
    text = text.substr(0, at) + " is given more than once";
  if (unknown.starts_with('-'))
    text = fmt::format("there is no option '{}'{}", unknown, meant(unknown, options_of(command)));
  else if (!unknown.empty() && chosen.empty())
    text = complaint_about_command(program, unknown);
  else if (chosen.empty() && program.get_require_subcommand_min() > 0)
    text = "a command is required";
  return fmt::format("{} (see {} --help)", text, name);
}

}  // namespace weft::tool
