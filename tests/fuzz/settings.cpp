// Options: a TOML file, and behind a zero byte lines of NAME=text for the environment.
#include "config/settings.hpp"

#include <algorithm>

#include "target.hpp"

namespace {

using namespace weft;
core::Environment variables_in(std::string_view lines) {
  core::Environment variables;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    if (const std::size_t equals = line.find('='); equals != std::string_view::npos)
      variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return variables;
}

/// Only ASCII: where a line begins with another character, toml++ 3.3 comes to a place that it
/// tells the compiler can't be reached (is_non_ascii_horizontal_whitespace), which is not Weft's.
std::string ascii(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7f; }, '?');
  return out;
}

std::string variable_of(const std::string& name) {
  for (const OptionInfo& info : options())
    if (info.name == name) return std::string(info.variable);
  return {};
}

/// Whatever was understood can be written as it is shown.
void show_and_read_again(const core::Settings& settings) {
  core::Environment shown;
  for (const Setting& each : settings.list)
    if (each.name != "config_file") shown.emplace(variable_of(each.name), each.value);
  const auto again = core::resolve_settings({}, shown);
  fuzz::require(again.has_value(), "a value that was read is not understood as it is shown");
  for (const Setting& each : again->list)
    if (each.name != "config_file")
      fuzz::require(each.value == shown.at(variable_of(each.name)),
                    "a value changes by being shown");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  const std::string_view input = fuzz::text_of(data, size);
  const std::size_t zero = std::min(input.find('\0'), input.size());
  file.write(ascii(input.substr(0, zero)));
  core::Environment variables = variables_in(input.substr(std::min(zero + 1, input.size())));
  variables["WEFT_CONFIG_FILE"] = file.path();
  const auto settings = core::resolve_settings({}, variables);
  if (settings)
    show_and_read_again(*settings);
  else
    fuzz::require(settings.error().code() == Code::invalid_argument, "an error of another kind");
  return 0;
}
