#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string_view>
#include <weft/version.hpp>

#include "common/printable.hpp"
#include "nixl/views.hpp"

namespace weft::tool {
namespace {

std::string file_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string line(std::string_view label, const std::string& text) {
  return fmt::format("  {:<9} {}\n", label, printable(text));
}

std::string headline(const NixlWheel& wheel) {
  return printable(fmt::format("{} {}, which Weft was {}checked with", wheel.package, wheel.version,
                               is_checked(wheel) ? "" : "not ")) +
         "\n" + line("in", wheel.folder);
}

std::string text(const NixlChanged& changed) {
  const NixlLink& link = changed.link;
  switch (changed.change) {
    case NixlChange::linked:
      return fmt::format("now leads to {}", link.target);
    case NixlChange::linked_already:
      return fmt::format("leads to {} already", link.target);
    case NixlChange::led_elsewhere:
      return fmt::format("now leads to {}; before, to {}", link.target, changed.before);
    case NixlChange::took_name:
      return fmt::format("now leads to {}; the wheel's own is kept as {}", link.target,
                         file_of(link.kept));
    case NixlChange::completed:
      return fmt::format(
          "now leads to {}, which an interrupted installation had begun; the "
          "wheel's own is kept as {}",
          link.target, file_of(link.kept));
    case NixlChange::removed:
      return fmt::format("{} is removed", file_of(link.path));
    case NixlChange::given_back:
      return fmt::format("{} is the wheel's own again", file_of(link.path));
    case NixlChange::nothing:
      return "nothing of Weft's was there";
  }
  return "?";
}

std::string text(const NixlLink& link) {
  const std::string kept =
      link.kept.empty() ? "" : fmt::format("; the wheel's own is kept as {}", file_of(link.kept));
  switch (link.state) {
    case NixlLinkState::linked:
      return fmt::format("leads to {}{}", link.target, kept);
    case NixlLinkState::dangling:
      return fmt::format("leads to {}, which is not there{}", link.target, kept);
    case NixlLinkState::interrupted:
      return "an installation was interrupted" + kept;
    case NixlLinkState::renewed:
      return fmt::format("is the wheel's own, which was installed anew; {} is of the one before",
                         file_of(link.kept));
  }
  return "?";
}

std::string log_text(const NixlOpening& opening) {
  std::string out;
  for (const std::string& each : opening.log) out += line("", "| " + each);
  return out;
}

/// Where the plug-in says which providers, NICs and libfabric it has; it may be told to be silent.
std::string engine_text(const NixlOpening& opening) {
  for (const std::string& each : opening.log)
    if (each.find(" weft info: ") != std::string::npos) return line("", each);
  return "";
}

std::string text(const NixlOpening& opening) {
  if (!opening.problem.empty())
    return line("opened", fmt::format("{}: {}", opening.name, opening.problem)) + log_text(opening);
  std::string out =
      line("opened", fmt::format("{}: memory {}; {} bytes written and compared, all right",
                                 opening.name, fmt::join(opening.memory, ", "), opening.bytes));
  for (const std::string& each : opening.loaded) out += line("", each);
  return out + engine_text(opening);
}

std::string text(const NixlWheelStatus& status) {
  std::string out = "\n" + headline(status.wheel);
  for (const NixlLink& link : status.links) out += line(link.name, text(link));
  if (status.links.empty()) out += line(nixl_own_name, "is not linked");
  for (const NixlOpening& opening : status.openings) out += text(opening);
  return out;
}

std::string choice_text(const NixlStatus& status) {
  const NixlChoice& choice = status.choice;
  if (!choice.problem.empty())
    return fmt::format("{}, which can't be imported here: {}", status.python.nixl, choice.problem);
  if (choice.module.empty()) return "the package nixl, which takes a wheel, is not installed";
  return fmt::format("{}, which takes {}", status.python.nixl, choice.module);
}

}  // namespace

std::string text(const std::vector<NixlWheelChanges>& wheels) {
  std::string out;
  for (const NixlWheelChanges& each : wheels) {
    out += headline(each.wheel);
    for (const NixlChanged& changed : each.changes) out += line(changed.link.name, text(changed));
    if (each.changes.empty()) out += line(nixl_own_name, "nothing of Weft's was there");
  }
  return out;
}

std::string text(const NixlStatus& status) {
  std::string out = line("Weft", fmt::format("{}, whose plug-in is {}", WEFT_VERSION,
                                             status.plugin.empty() ? "not there" : status.plugin));
  out += line("Python", fmt::format("{}, {}", status.python.version, status.python.executable));
  out += line("nixl", choice_text(status));
  if (!status.plugin_dir.empty())
    out +=
        line("", fmt::format("looks for plug-ins in {} and nowhere else: NIXL_PLUGIN_DIR says so",
                             status.plugin_dir));
  for (const NixlWheelStatus& each : status.wheels) out += text(each);
  return out;
}

}  // namespace weft::tool
