#include "nixl/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/options.hpp"

namespace weft::tool {
namespace {

/// It becomes part of a file's name.
CLI::Validator backend_of_others() {
  return CLI::Validator(
      [](std::string& name) {
        const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char each) {
          return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_';
        });
        if (!word) return fmt::format("'{}' is no backend's name", name);
        return std::string(name == "WEFT" ? "WEFT has this name without --as" : "");
      },
      "");
}

}  // namespace

void add_options(CLI::App& command, NixlOptions& options) {
  OptionGroup positionals(command, "Positionals"), group(command, "NIXL");
  positionals.choice("action", options.action, nixl_action_names, "What to do")->required();
  group.text("--python", options.python, "PATH",
             "Whose NIXL: an interpreter, or the folder of a virtual environment; without it, "
             "that of $VIRTUAL_ENV, else python3");
  CLI::Option* const as =
      group
          .text("--as", options.as, "NAME",
                "Take the name of one of NIXL's own backends, such as UCX, for servers that take "
                "no other; NIXL's own is kept, and uninstall gives it the name back")
          ->check(backend_of_others());
  add_timeout(group, options.timeout);
  add_console(command, options.console, false);
  command.parse_complete_callback([&options, as] {
    if (options.action == NixlAction::status && as->count() > 0)
      throw CLI::ValidationError("--as", "status opens each backend that leads to Weft anyway");
  });
}

}  // namespace weft::tool
