// Names under which grants are published and looked up.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <weft/error.hpp>

namespace weft::core {

inline Result<void> check_published_name(std::string_view name) {
  constexpr std::size_t longest = 255;
  if (!name.empty() && name.size() <= longest) return {};
  return fail(Code::invalid_argument,
              fmt::format("a published name has 1 to {} bytes, not {}", longest, name.size()));
}

}  // namespace weft::core
