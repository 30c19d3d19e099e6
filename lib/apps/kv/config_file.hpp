// Hugging Face's config.json, key by key.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>

namespace weft::kv {

using Json = nlohmann::json;

constexpr std::uint32_t most_layers = 4096;
constexpr std::uint32_t greatest_number = 1 << 24;  // of heads, elements and tokens

/// Caught where reading ends.
struct Refused : std::runtime_error {
  Refused(Code why, const std::string& sentence) : std::runtime_error(sentence), code(why) {}
  Code code;
};

template <typename... Args>
[[noreturn]] void refuse(Code code, fmt::format_string<Args...> text, Args&&... args) {
  throw Refused(code, fmt::format(text, std::forward<Args>(args)...));
}

/// Whether a value says that a feature is absent.
inline bool says_no(const Json& value) {
  return value.is_null() || value == false || value == 0 || (value.is_array() && value.empty());
}

/// The part of the file that describes the language model, and what was asked of it.
class ConfigFile {
 public:
  explicit ConfigFile(const Json& json) : json_(json) {}

  bool has(const char* key) const {
    asked_.insert(key);
    return json_.contains(key) && !says_no(json_[key]);
  }
  const Json& at(const char* key) const {
    asked_.insert(key);
    if (!json_.contains(key)) refuse(Code::invalid_argument, "\"{}\" is missing", key);
    return json_[key];
  }
  std::uint32_t number(const char* key, std::uint32_t least = 1) const {
    const Json& value = at(key);
    if (!value.is_number_unsigned() || value > greatest_number || value < least)
      refuse(Code::invalid_argument, "\"{}\" is {} and must be a number from {} to {}", key,
             value.dump(), least, greatest_number);
    return value.get<std::uint32_t>();
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string())
      refuse(Code::invalid_argument, "\"{}\" is {} and must be a text", key, value.dump());
    return value.get<std::string>();
  }
  /// A list that has an entry for each layer.
  const Json& list(const char* key, std::size_t layers) const {
    const Json& value = at(key);
    if (!value.is_array() || value.size() < layers)
      refuse(Code::invalid_argument, "\"{}\" must be a list with an entry for each of {} layers",
             key, layers);
    return value;
  }
  ConfigFile part(const char* key) const {
    const Json& value = at(key);
    if (!value.is_object()) refuse(Code::invalid_argument, "\"{}\" must be an object", key);
    return ConfigFile(value);
  }
  /// Refuses those of `keys` that the file has and nobody asked for.
  void refuse_unasked(std::span<const char* const> keys, std::string_view changed) const {
    for (const char* key : keys)
      if (!asked_.contains(key) && json_.contains(key) && !says_no(json_[key]))
        refuse(Code::unsupported,
               "\"{}\" changes {}, and is not known of models of this \"model_type\"", key,
               changed);
  }

 private:
  const Json& json_;
  mutable std::set<std::string, std::less<>> asked_;
};

/// Of a table by "model_type", that of the file.
template <typename Readers>
auto reader_of(const ConfigFile& config, const Readers& readers) {
  const std::string type = config.text("model_type");
  const auto reader = readers.find(type);
  if (reader == readers.end()) {
    std::vector<std::string_view> names;
    for (const auto& [each, function] : readers) names.push_back(each);
    refuse(Code::unsupported, "\"model_type\" is \"{}\", which is unknown; known are {}", type,
           fmt::join(names, ", "));
  }
  return reader->second;
}

inline std::uint32_t layer_count(const ConfigFile& config) {
  const std::uint32_t layers = config.number("num_hidden_layers");
  if (layers > most_layers)
    refuse(Code::invalid_argument, "\"num_hidden_layers\" is {} and must be at most {}", layers,
           most_layers);
  return layers;
}

/// head_dim, or what it is where a file lacks it.
inline std::uint32_t head_size(const ConfigFile& config, const char* key = "head_dim") {
  if (config.has(key)) return config.number(key);
  const std::uint32_t hidden = config.number("hidden_size");
  const std::uint32_t heads = config.number("num_attention_heads");
  if (hidden % heads != 0)
    refuse(Code::invalid_argument,
           "\"{}\" is missing, and {} heads do not divide \"hidden_size\" {}", key, heads, hidden);
  return hidden / heads;
}

/// Python writes Infinity and NaN, which are no JSON: null in their place, outside of strings.
inline std::string without_python_numbers(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = quoted && text[i] == '\\' && i + 1 < text.size();
    if (text[i] == '"') quoted = !quoted;
    std::size_t length = 0;
    for (const std::string_view number : {"-Infinity", "Infinity", "NaN"})
      if (!quoted && length == 0 && text.substr(i).starts_with(number)) length = number.size();
    if (length > 0) {
      plain += "null";
      i += length - 1;
      continue;
    }
    plain += text[i];
    if (escaped) plain += text[++i];
  }
  return plain;
}

}  // namespace weft::kv
