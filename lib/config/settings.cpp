#include "config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "config/config_file.hpp"
#include "config/setting_text.hpp"

namespace weft::core {
namespace {

/// A field of Config.
struct Option {
  std::string_view name;
  bool (*changed)(const Config& config);
  std::string (*parse)(std::string_view text, Config& config);
  std::string (*print)(const Config& config);
};

template <auto Field>
constexpr Option option(std::string_view name) {
  return {
      name,
      [](const Config& config) { return config.*Field != Config{}.*Field; },
      [](std::string_view text, Config& config) { return from_text(text, config.*Field); },
      [](const Config& config) { return to_text(config.*Field); },
  };
}

// In the order of Config. The file's own name is no option in it, and is read before all others.
constexpr std::array options = {
    option<&Config::name>("name"),
    option<&Config::listen>("listen"),
    option<&Config::advertise>("advertise"),
    option<&Config::allow_unauthenticated_network>("allow_unauthenticated_network"),
    option<&Config::secret_file>("secret_file"),
    option<&Config::tls_certificate>("tls_certificate"),
    option<&Config::tls_key>("tls_key"),
    option<&Config::tls_authorities>("tls_authorities"),
    option<&Config::tls_check_host>("tls_check_host"),
    option<&Config::rail_address>("rail_address"),
    option<&Config::providers>("providers"),
    option<&Config::nics>("nics"),
    option<&Config::max_nics>("max_nics"),
    option<&Config::gpus>("gpus"),
    option<&Config::topo_xml>("topo_xml"),
    option<&Config::register_everywhere>("register_everywhere"),
    option<&Config::share_gpu_memory>("share_gpu_memory"),
    option<&Config::place_threads>("place_threads"),
    option<&Config::allow_emulation>("allow_emulation"),
    option<&Config::rails>("rails"),
    option<&Config::threads>("threads"),
    option<&Config::progress>("progress"),
    option<&Config::spin>("spin"),
    option<&Config::chunk_bytes>("chunk_bytes"),
    option<&Config::copy_at_once_bytes>("copy_at_once_bytes"),
    option<&Config::window>("window"),
    option<&Config::transport>("transport"),
    option<&Config::policy>("policy"),
    option<&Config::latency_policy>("latency_policy"),
    option<&Config::bulk_policy>("bulk_policy"),
    option<&Config::peer_policies>("peer_policies"),
    option<&Config::bounce_buffer_bytes>("bounce_buffer_bytes"),
    option<&Config::bounce_buffers>("bounce_buffers"),
    option<&Config::max_message>("max_message"),
    option<&Config::message_credits>("message_credits"),
    option<&Config::unclaimed_bytes>("unclaimed_bytes"),
    option<&Config::send_queue>("send_queue"),
    option<&Config::max_transfers>("max_transfers"),
    option<&Config::peer_events>("peer_events"),
    option<&Config::metrics>("metrics"),
    option<&Config::metrics_listen>("metrics_listen"),
    option<&Config::default_timeout>("default_timeout"),
    option<&Config::heartbeat>("heartbeat"),
    option<&Config::death_after>("death_after"),
};

constexpr Option config_file = option<&Config::config_file>("config_file");

std::string variable_of(const Option& option) {
  std::string name = fmt::format("WEFT_{}", option.name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return name;
}

Result<void> parse(const Option& option, std::string_view text, std::string_view place,
                   Config& config) {
  const std::string expected = option.parse(text, config);
  if (expected.empty()) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} says '{}' where it should say {}", place, text, expected));
}

/// Completes one option, if the call left it at its default.
Result<Setting> resolve(const Option& option, const Environment& environment, const FileText& file,
                        Config& config) {
  Setting setting;
  setting.name = option.name;
  std::optional<std::string> text;
  if (option.changed(config)) {
    setting.source = Setting::Source::call;
  } else if (text = environment(variable_of(option)); text) {
    setting.source = Setting::Source::environment;
    setting.place = variable_of(option);
  } else if (const auto entry = file.find(setting.name); entry != file.end()) {
    text = entry->second.text;
    setting.source = Setting::Source::file;
    setting.place = entry->second.place;
  }
  if (text)
    if (auto parsed = parse(option, *text, setting.place, config); !parsed)
      return fail(std::move(parsed.error()));
  setting.value = option.print(config);
  return setting;
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found != options.end() ? &*found : nullptr;
}

Result<void> check_names(const FileText& file) {
  for (const auto& [name, entry] : file)
    if (find_option(name) == nullptr)
      return fail(Code::invalid_argument,
                  fmt::format("{} sets '{}', which is no option", entry.place, name));
  return {};
}

}  // namespace

Environment environment_for(const Config& call) {
  return [wanted = call.use_environment](const std::string& name) -> std::optional<std::string> {
    const char* text = wanted ? std::getenv(name.c_str()) : nullptr;
    if (text == nullptr) return std::nullopt;
    return text;
  };
}

Result<Settings> resolve_settings(const Config& call, const Environment& environment) {
  Settings settings{call, {}};
  auto source = resolve(config_file, environment, {}, settings.config);
  if (!source) return fail(std::move(source.error()));
  settings.list.push_back(std::move(*source));
  FileText file;
  if (!settings.config.config_file.empty()) {
    auto read = read_config_file(settings.config.config_file);
    if (!read) return fail(std::move(read.error()));
    file = std::move(*read);
    if (auto checked = check_names(file); !checked) return fail(std::move(checked.error()));
  }
  for (const Option& option : options) {
    auto setting = resolve(option, environment, file, settings.config);
    if (!setting) return fail(std::move(setting.error()));
    settings.list.push_back(std::move(*setting));
  }
  return settings;
}

}  // namespace weft::core

namespace weft {

Result<void> set_option(Config& config, std::string_view name, std::string_view text) {
  const core::Option* option =
      name == core::config_file.name ? &core::config_file : core::find_option(name);
  if (option == nullptr) return fail(Code::not_found, fmt::format("'{}' is no option", name));
  return core::parse(*option, text, name, config);
}

}  // namespace weft
