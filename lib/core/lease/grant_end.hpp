// Why a grant does not hold any more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::core {

enum class GrantEnd : std::uint8_t {
  revoked,   // by the application, or because the engine closes
  fenced,    // likewise, over the heads of its holders
  expired,   // its time is over
  released,  // its segment was released
};

inline constexpr std::array<std::string_view, 4> grant_ends = {"revoked", "fenced", "expired",
                                                               "released"};

constexpr std::string_view to_string(GrantEnd why) {
  return grant_ends[static_cast<std::size_t>(why)];
}

}  // namespace weft::core
