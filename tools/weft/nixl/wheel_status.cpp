#include "nixl/wheel_status.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "nixl/checked_versions.hpp"
#include "nixl/plugin_file.hpp"

namespace weft::tool {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The backends to open: those that are linked and, where NIXL looks elsewhere, what is there.
std::vector<std::string> backends_of(const NixlWheelStatus& status, const std::string& elsewhere) {
  if (!elsewhere.empty()) return {nixl_own_name};
  std::vector<std::string> names;
  for (const NixlLink& link : status.links)
    if (!link.target.empty()) names.push_back(link.name);
  return names;
}

Result<NixlWheelStatus> status_of(const NixlStatus& status, const NixlWheel& wheel,
                                  Nanoseconds patience) {
  auto links = find_links(wheel.folder);
  if (!links) return fail(std::move(links.error()));
  NixlWheelStatus found{wheel, std::move(*links), {}};
  for (const std::string& name : backends_of(found, status.plugin_dir)) {
    auto opening = open_backend(status.python, wheel, name, patience);
    if (!opening) return fail(std::move(opening.error()));
    found.openings.push_back(std::move(*opening));
  }
  return found;
}

/// Empty: it can be used.
std::string why_unusable(const NixlWheelStatus& status) {
  for (const NixlLink& link : status.links)
    if (link.state == NixlLinkState::interrupted)
      return fmt::format(
          "an installation under the name {} was interrupted; do it again, or take "
          "it back by weft nixl uninstall",
          link.name);
  for (const NixlOpening& opening : status.openings)
    if (!opening.problem.empty()) return fmt::format("{}: {}", opening.name, opening.problem);
  return status.openings.empty() ? "no link leads to Weft's plug-in; weft nixl install makes one"
                                 : "";
}

}  // namespace

bool is_checked(const NixlWheel& wheel) {
  return nixl::is_checked(wheel.version);
}

bool is_like_checked(const NixlWheel& wheel) {
  return nixl::is_like_checked(wheel.version);
}

Result<NixlStatus> find_status(const NixlPython& python, Nanoseconds patience) {
  auto choice = find_choice(python, patience);
  if (!choice) return fail(std::move(choice.error()));
  NixlStatus status{find_nixl_plugin().value_or(""),
                    python,
                    std::move(*choice),
                    environment("NIXL_PLUGIN_DIR"),
                    {}};
  for (const NixlWheel& wheel : python.wheels) {
    auto found = status_of(status, wheel, patience);
    if (!found) return fail(std::move(found.error()));
    status.wheels.push_back(std::move(*found));
  }
  return status;
}

std::string why_unusable(const NixlStatus& status) {
  bool taken = false;
  for (const NixlWheelStatus& each : status.wheels) {
    if (!status.choice.module.empty() && each.wheel.module != status.choice.module) continue;
    taken = true;
    const std::string why = why_unusable(each);
    if (!why.empty()) return fmt::format("{} {}: {}", each.wheel.package, each.wheel.version, why);
  }
  return taken ? ""
               : fmt::format("nixl takes {}, which this Weft can't link", status.choice.module);
}

}  // namespace weft::tool
