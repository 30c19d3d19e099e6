// weft nixl: links Weft's plug-in into NIXL, takes it back, and looks whether it works.
#include <fmt/format.h>

#include <optional>

#include "command/ending.hpp"
#include "common/printable.hpp"
#include "look/topology_views.hpp"
#include "nixl/commands.hpp"
#include "nixl/links.hpp"
#include "nixl/plugin_file.hpp"
#include "nixl/python.hpp"
#include "nixl/views.hpp"
#include "nixl/wheel_status.hpp"

namespace weft::tool {
namespace {

using OrderedJson = nlohmann::ordered_json;

void warn(const ConsoleOptions& console, const std::string& sentence) {
  if (!console.json || !console.quiet)
    complain(fmt::format("weft nixl: {}\n", printable(sentence)));
}

Result<NixlPython> asked_python(const NixlOptions& options) {
  return find_python(options.python).and_then([&](const std::string& python) {
    return find_wheels(python, options.timeout);
  });
}

/// The results of a change in all folders: the first error does not keep it from the others.
struct Work {
  std::vector<NixlWheelChanges> done;
  std::optional<Error> error;

  void take(Result<NixlChanged> changed) {
    if (changed)
      done.back().changes.push_back(std::move(*changed));
    else if (!error)
      error = std::move(changed.error());
  }
};

std::vector<std::string> warnings_of(const NixlOptions& options, const Work& work) {
  std::vector<std::string> warnings;
  for (const NixlWheelChanges& each : work.done)
    if (!is_checked(each.wheel))
      warnings.push_back(fmt::format(
          "{} {} is a version that Weft was not checked with: the plug-in {}, unless "
          "WEFT_NIXL_UNCHECKED=1 takes the risk",
          each.wheel.package, each.wheel.version,
          is_like_checked(each.wheel) ? "tests it in a process of its own before it serves"
                                      : "refuses it"));
  if (!options.as.empty())
    warnings.push_back(fmt::format(
        "WHOEVER ASKS THIS PYTHON'S NIXL FOR {0} GETS WEFT from now on; weft nixl uninstall --as "
        "{0} gives {0} back",
        options.as));
  return warnings;
}

/// Tells all changes even where one failed; the document is then one of errors.
int finish(const NixlOptions& options, const NixlPython& python, const Work& work,
           const std::vector<std::string>& warnings) {
  if (work.error) {
    if (!options.console.json) print(text(work.done));
    return end_with("nixl", options.console, *work.error);
  }
  print(options.console.json ? dump({{"command", "nixl"},
                                     {"action", name_of(nixl_action_names, options.action)},
                                     {"python", to_json(python)},
                                     {"wheels", to_json(work.done)},
                                     {"warnings", warnings}})
                             : text(work.done));
  for (const std::string& each : warnings) warn(options.console, each);
  return exit_success;
}

int install(const NixlOptions& options, const NixlPython& python) {
  const auto plugin = find_nixl_plugin();
  if (!plugin) return end_with("nixl", options.console, plugin.error());
  Work work;
  for (const NixlWheel& wheel : python.wheels) {
    work.done.push_back({wheel, {}});
    work.take(link_plugin(wheel.folder, options.as.empty() ? nixl_own_name : options.as, *plugin));
  }
  return finish(options, python, work, warnings_of(options, work));
}

/// All that is Weft's, or what is named.
Result<std::vector<std::string>> names_to_remove(const NixlOptions& options,
                                                 const NixlWheel& wheel) {
  if (!options.as.empty()) return std::vector{options.as};
  auto links = find_links(wheel.folder);
  if (!links) return fail(std::move(links.error()));
  std::vector<std::string> names;
  for (const NixlLink& link : *links) names.push_back(link.name);
  return names;
}

int uninstall(const NixlOptions& options, const NixlPython& python) {
  Work work;
  for (const NixlWheel& wheel : python.wheels) {
    work.done.push_back({wheel, {}});
    const auto names = names_to_remove(options, wheel);
    if (!names) work.take(fail(names.error()));
    for (const std::string& name : names.value_or(std::vector<std::string>()))
      work.take(unlink_plugin(wheel.folder, name));
  }
  return finish(options, python, work, {});
}

int show_status(const NixlOptions& options, const NixlPython& python) {
  const auto status = find_status(python, options.timeout);
  if (!status) return end_with_cause("nixl", options.console, status.error());
  const std::string why = why_unusable(*status);
  OrderedJson json = {{"command", "nixl"}, {"action", "status"}, {"usable", why.empty()}};
  json["why_not"] = why.empty() ? OrderedJson() : OrderedJson(why);
  json.update(to_json(*status));
  print(options.console.json ? dump(json) : text(*status) + (why.empty() ? "\nusable\n" : "\n"));
  if (why.empty()) return exit_success;
  warn(options.console, "not usable: " + why);
  return exit_failure;
}

}  // namespace

int run_nixl(const NixlOptions& options) {
  const auto python = asked_python(options);
  if (!python) return end_with_cause("nixl", options.console, python.error());
  switch (options.action) {
    case NixlAction::install:
      return install(options, *python);
    case NixlAction::uninstall:
      return uninstall(options, *python);
    case NixlAction::status:
      return show_status(options, *python);
  }
  return exit_failure;
}

}  // namespace weft::tool
