#include "engine/config_file.hpp"

#include <fmt/format.h>

// toml++ asserts that a table's header begins with a key, and without assertions lets the compiler
// assume it, where the code behind it says that there is none: "[=]" would end the process.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <optional>

namespace weft::core {
namespace {

/// The text of a value; nothing for tables, dates and the like.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  const auto* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::string joined;
  for (const toml::node& item : *list) {
    const auto* text = item.as_string();
    if (text == nullptr || text->get().find(',') != std::string::npos) return std::nullopt;
    joined += (joined.empty() ? "" : ",") + text->get();
  }
  return joined;
}

}  // namespace

Result<FileText> read_config_file(const std::string& path) {
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(
        Code::invalid_argument,
        fmt::format("can't read {}:{}: {}", path, error.source().begin.line, error.description()));
  }
  FileText file;
  for (const auto& [key, node] : parsed.table()) {
    const std::string place = fmt::format("{}:{}", path, node.source().begin.line);
    const auto text = text_of(node);
    if (!text)
      return fail(
          Code::invalid_argument,
          fmt::format("{}: '{}' must be a text, a number, true or false, or a list of texts", place,
                      std::string_view(key.str())));
    file.emplace(std::string(key.str()), FileEntry{*text, place});
  }
  return file;
}

}  // namespace weft::core
