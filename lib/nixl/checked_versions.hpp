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

static_assert(is_checked("1.5.1") && !is_checked("1.5") && !is_checked(""));

}  // namespace weft::nixl
