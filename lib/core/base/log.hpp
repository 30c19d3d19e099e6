// Internal logging: formats only what will be seen.
#pragma once

#include <fmt/format.h>

#include <utility>
#include <weft/log.hpp>

namespace weft::core {

bool log_enabled(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft::core
