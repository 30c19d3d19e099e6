#include "config/config_file.hpp"

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

#include <algorithm>
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

std::string place_of(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

/// "max_copies=0,providers=efa+verbs": the values of a policy's table, but for tables in it.
Result<std::string> policy_text(const toml::table& table, const std::string& path) {
  std::string terms;
  for (const auto& [key, node] : table) {
    if (node.is_table()) continue;
    auto text = text_of(node);
    if (const auto* number = node.as_floating_point()) text = fmt::format("{}", number->get());
    if (!text)
      return fail(Code::invalid_argument,
                  fmt::format("{}: the value of '{}' is not valid in a policy",
                              place_of(path, node), std::string_view(key.str())));
    std::replace(text->begin(), text->end(), ',', '+');
    terms += fmt::format("{}{}={}", terms.empty() ? "" : ",", std::string_view(key.str()), *text);
  }
  return terms;
}

/// The tables in [policy.peers], as text: "NAME: POLICY; NAME: POLICY".
Result<std::string> peer_policies_text(const toml::table& table, const std::string& path) {
  std::string policies;
  for (const auto& [name, node] : table) {
    if (!node.is_table())
      return fail(Code::invalid_argument,
                  fmt::format("{}: '{}' must be a table, [policy.peers.\"NAME\"]",
                              place_of(path, node), std::string_view(name.str())));
    auto policy = policy_text(*node.as_table(), path);
    if (!policy) return policy;
    policies += fmt::format("{}{}: {}", policies.empty() ? "" : "; ", std::string_view(name.str()),
                            *policy);
  }
  return policies;
}

/// [policy] and the tables in it, each an option of its own.
Result<void> read_policies(const toml::table& table, const std::string& path, FileText& file) {
  const auto add = [&](const char* option, Result<std::string> text,
                       const toml::table& where) -> Result<void> {
    if (!text) return fail(std::move(text.error()));
    file.emplace(option, FileEntry{std::move(*text), place_of(path, where)});
    return {};
  };
  if (auto added = add("policy", policy_text(table, path), table); !added) return added;
  for (const auto& [key, node] : table) {
    if (!node.is_table()) continue;
    const toml::table& inner = *node.as_table();
    const std::string_view name = key.str();
    Result<void> added;
    if (name == "latency" || name == "bulk")
      added =
          add(name == "bulk" ? "bulk_policy" : "latency_policy", policy_text(inner, path), inner);
    else if (name == "peers")
      added = add("peer_policies", peer_policies_text(inner, path), inner);
    else
      added =
          fail(Code::invalid_argument,
               fmt::format("{}: there is no class '{}'; policies are of latency, bulk and peers",
                           place_of(path, node), name));
    if (!added) return added;
  }
  return {};
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
    if (key.str() == "policy" && node.is_table()) {
      if (auto read = read_policies(*node.as_table(), path, file); !read)
        return fail(std::move(read.error()));
      continue;
    }
    const std::string place = place_of(path, node);
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
