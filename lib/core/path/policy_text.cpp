// Policies as text, both ways.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <weft/policy.hpp>

namespace weft {
namespace {

/// Takes what is before the separator, or all, off the text's beginning.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  std::string_view item = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  while (item.starts_with(' ')) item.remove_prefix(1);
  while (item.ends_with(' ')) item.remove_suffix(1);
  return item;
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_truth(std::string_view text, bool given, bool& truth) {
  truth = !given || text == "true" || text == "1";
  return truth || text == "false" || text == "0";
}

/// Returns what the value should have been; empty if it was understood.
std::string read_term(const std::string& name, std::string_view value, bool given, Policy& policy) {
  if (name == "max_copies") {
    unsigned copies = 0;
    if (!read_number(value, copies)) return "a number of copies";
    policy.max_copies = copies;
  } else if (name == "min_gbps") {
    if (!read_number(value, policy.min_gbps) || !(policy.min_gbps >= 0) ||
        !std::isfinite(policy.min_gbps))
      return "a number of Gb/s";
  } else if (name == "forbid_cpu_copies" || name == "require_gpudirect") {
    bool& truth = name == "forbid_cpu_copies" ? policy.forbid_cpu_copies : policy.require_gpudirect;
    if (!read_truth(value, given, truth)) return "true or false";
  } else {
    policy.providers.clear();
    while (!value.empty()) policy.providers.emplace_back(cut(value, '+'));
    const auto& names = policy.providers;
    if (names.empty() || std::find(names.begin(), names.end(), "") != names.end())
      return "names of providers with + between them";
  }
  return {};
}

}  // namespace

Result<Policy> parse_policy(std::string_view text) {
  static constexpr std::string_view known[] = {"max_copies", "forbid_cpu_copies",
                                               "require_gpudirect", "min_gbps", "providers"};
  Policy policy;
  while (!text.empty()) {
    std::string_view value = cut(text, ',');
    const bool given = value.find('=') != std::string_view::npos;
    std::string name(cut(value, '='));
    std::replace(name.begin(), name.end(), '-', '_');
    if (std::find(std::begin(known), std::end(known), name) == std::end(known))
      return fail(Code::invalid_argument,
                  fmt::format("a policy has no '{}'; it has {}", name, fmt::join(known, ", ")));
    if (const std::string expected = read_term(name, value, given, policy); !expected.empty())
      return fail(Code::invalid_argument,
                  fmt::format("a policy's {} is {}, not '{}'", name, expected, value));
  }
  return policy;
}

std::string to_string(const Policy& policy) {
  std::vector<std::string> terms;
  if (policy.max_copies) terms.push_back(fmt::format("max_copies={}", *policy.max_copies));
  if (policy.forbid_cpu_copies) terms.emplace_back("forbid_cpu_copies");
  if (policy.require_gpudirect) terms.emplace_back("require_gpudirect");
  if (policy.min_gbps > 0) terms.push_back(fmt::format("min_gbps={}", policy.min_gbps));
  if (!policy.providers.empty())
    terms.push_back(fmt::format("providers={}", fmt::join(policy.providers, "+")));
  return fmt::format("{}", fmt::join(terms, ","));
}

}  // namespace weft
