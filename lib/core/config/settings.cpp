#include "config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/named.hpp"
#include "config/config_file.hpp"
#include "config/option.hpp"

namespace weft::core {
namespace {

// The file's own name comes from the call or the environment, and is read before all others.
constexpr std::string_view file_option = "config_file";

std::string spelled_in(const Setting& setting) {
  switch (setting.source) {
    case Setting::Source::environment:
      return setting.place;
    case Setting::Source::file:
      return fmt::format("{}: {}", setting.place, setting.name);
    case Setting::Source::call:
    case Setting::Source::standard:
      break;
  }
  return setting.name;
}

Result<void> parse(const Option& option, std::string_view text, std::string_view spelled,
                   Config& config) {
  const std::string expected = option.parse(text, config);
  if (expected.empty()) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} says '{}' where it should say {}", spelled, text, expected));
}

Result<void> check_range(const Option& option, std::string_view spelled, const Config& config) {
  const std::string breach = option.breach(*option.info, config);
  if (breach.empty()) return {};
  return fail(Code::invalid_argument, fmt::format("{} {}", spelled, breach));
}

/// Completes one option, if the call left it at its default.
Result<Setting> resolve(const Option& option, const Environment& environment, const FileText& file,
                        Config& config) {
  Setting setting;
  setting.name = option.info->name;
  const std::string variable(option.info->variable);
  std::optional<std::string> text;
  if (option.changed(config)) {
    setting.source = Setting::Source::call;
  } else if (const auto set = environment.find(variable); set != environment.end()) {
    text = set->second;
    setting.source = Setting::Source::environment;
    setting.place = variable;
  } else if (const auto entry = file.find(setting.name); entry != file.end()) {
    text = entry->second.text;
    setting.source = Setting::Source::file;
    setting.place = entry->second.place;
  }
  const std::string spelled = spelled_in(setting);
  if (text)
    if (auto parsed = parse(option, *text, spelled, config); !parsed)
      return fail(std::move(parsed.error()));
  if (auto checked = check_range(option, spelled, config); !checked)
    return fail(std::move(checked.error()));
  setting.value = option.print(config);
  return setting;
}

std::string did_you_mean(std::string_view name) {
  const OptionInfo* meant = nearest_option(name);
  return meant != nullptr ? fmt::format("; did you mean {}?", meant->name) : "";
}

Result<void> check_names(const FileText& file) {
  for (const auto& [name, entry] : file) {
    if (name == file_option)
      return fail(Code::invalid_argument,
                  fmt::format("{} sets '{}', which is no option in a file", entry.place, name));
    if (find_option(name) == nullptr)
      return fail(Code::invalid_argument, fmt::format("{} sets '{}', which is no option{}",
                                                      entry.place, name, did_you_mean(name)));
  }
  return {};
}

Result<FileText> read_file_of(Config& config, const Environment& environment) {
  auto named = resolve(*find_option(file_option), environment, {}, config);
  if (!named) return fail(std::move(named.error()));
  if (config.config_file.empty()) return FileText{};
  return read_config_file(config.config_file).and_then([](FileText&& file) -> Result<FileText> {
    if (auto checked = check_names(file); !checked) return fail(std::move(checked.error()));
    return std::move(file);
  });
}

}  // namespace

std::string Settings::spelled(std::string_view option) const {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Setting& setting) { return setting.name == option; });
  return found != list.end() ? spelled_in(*found) : std::string(option);
}

Result<Settings> resolve_settings(const Config& call, const Environment& environment) {
  Settings settings{call, {}, unknown_variables(environment)};
  Config with_file = call;
  const auto file = read_file_of(with_file, environment);
  if (!file) return fail(file.error());
  for (const Option& option : option_table()) {
    auto setting = resolve(option, environment, *file, settings.config);
    if (!setting) return fail(std::move(setting.error()));
    settings.list.push_back(std::move(*setting));
  }
  return settings;
}

}  // namespace weft::core

namespace weft {

Result<void> set_option(Config& config, std::string_view name, std::string_view text) {
  const core::Option* option = core::find_option(name);
  if (option == nullptr)
    return fail(Code::not_found,
                fmt::format("'{}' is no option{}", name, core::did_you_mean(name)));
  Config changed = config;
  if (auto parsed = core::parse(*option, text, name, changed); !parsed) return parsed;
  if (auto checked = core::check_range(*option, name, changed); !checked) return checked;
  config = std::move(changed);
  return {};
}

std::string_view to_string(Setting::Source source) noexcept {
  static constexpr core::Named<Setting::Source> sources[] = {
      {"default", Setting::Source::standard},
      {"file", Setting::Source::file},
      {"environment", Setting::Source::environment},
      {"call", Setting::Source::call}};
  return core::name_of<Setting::Source>(sources, source);
}

}  // namespace weft
