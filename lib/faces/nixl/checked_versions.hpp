// The releases of NIXL whose binary interface was compared with the declarations here.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace weft::nixl {

inline constexpr std::array<std::string_view, 7> checked_versions = {
    "1.3.0", "1.3.1", "1.3.2", "1.4.0", "1.4.1", "1.5.0", "1.5.1"};

constexpr bool is_checked(std::string_view version) {
  return std::find(checked_versions.begin(), checked_versions.end(), version) !=
         checked_versions.end();
}

/// Whether it is a later release of a line of which some were checked: "1.5.9".
constexpr bool is_like_checked(std::string_view version) {
  const std::size_t patch = version.rfind('.') + 1;
  const auto digits = version.substr(patch);
  return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos &&
         std::any_of(checked_versions.begin(), checked_versions.end(), [&](std::string_view each) {
           return each.substr(0, each.rfind('.') + 1) == version.substr(0, patch);
         });
}

static_assert(is_checked("1.5.1") && !is_checked("1.5") && !is_checked(""));
static_assert(is_like_checked("1.5.2") && is_like_checked("1.3.10"));
static_assert(!is_like_checked("1.6.0") && !is_like_checked("1.5.2rc1") && !is_like_checked("1.5"));
static_assert(!is_like_checked("1.5.") && !is_like_checked("") && !is_like_checked("11.5.2"));

}  // namespace weft::nixl
