#include "nixl/options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <tuple>

#include "base/log.hpp"
#include "base/random.hpp"

namespace weft::nixl {
namespace {

constexpr std::string_view timeout_option = "timeout_ms", unchecked_option = "unchecked_nixl";
constexpr std::size_t longest_name = 255;  // Config::name

/// Agents of one name may live on several machines, and Weft takes engines of one name for one
/// service: so each engine has a name of its own, which still tells its owner.
std::string engine_name(const std::string& agent) {
  const std::string suffix = fmt::format("@{:016x}", core::random_u64());
  std::string name;
  for (const char letter : agent.substr(0, longest_name - suffix.size()))
    name += static_cast<unsigned char>(letter) < ' ' || letter == '\x7f' ? '?' : letter;
  return name + suffix;
}

Result<void> read_timeout(const std::string& text, Config& config) {
  std::uint32_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || rest != end || count == 0)
    return fail(Code::invalid_argument,
                fmt::format("{} says '{}' where it should say milliseconds, from 1 on",
                            timeout_option, text));
  config.default_timeout = std::chrono::milliseconds(count);
  return {};
}

/// Servers hand back the defaults that they were told of: to say no is to say nothing.
Result<void> read_flag(std::string_view name, const std::string& text, bool& value) {
  value = value || text == "true";
  if (text == "true" || text == "false") return {};
  return fail(Code::invalid_argument,
              fmt::format("{} says '{}' where it should say true or false", name, text));
}

Result<void> read_option(const std::string& name, const std::string& text, Options& options) {
  if (name == timeout_option) return read_timeout(text, options.config);
  if (name == unchecked_option) return read_flag(name, text, options.unchecked);
  return set_option(options.config, name, text);
}

bool environment_says(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && (text == std::string_view("1") || text == std::string_view("true"));
}

}  // namespace

Result<Options> read_options(const abi::InitParameters& init) {
  Options options;
  options.unchecked = environment_says("WEFT_NIXL_UNCHECKED");
  for (const auto& [name, text] : *init.parameters) {
    auto read = read_option(name, text, options);
    if (read) continue;
    if (read.error().code() != Code::not_found || init.type == "WEFT")
      return fail(std::move(read.error()));
    core::log(LogLevel::warning, "NIXL backend {}: Weft stands in for it, and has no parameter {}",
              init.type, name);
  }
  if (options.config.name.empty()) options.config.name = engine_name(init.agent);
  options.config.peer_events = true;  // the inbox lives on them
  options.config.progress = Progress::threads;
  options.config.polls = true;
  return options;
}

Config config_of(const Engine& engine) {
  Config config;
  for (const Setting& setting : engine.info().settings)
    std::ignore = set_option(config, setting.name, setting.value);
  return config;
}

abi::Parameters own_parameters() {
  return {{std::string(timeout_option), "30000"}, {std::string(unchecked_option), "false"}};
}

}  // namespace weft::nixl
