/// @file
/// Where log lines go. Weft prints nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <weft/export.hpp>

namespace weft {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

using LogSink = std::function<void(LogLevel level, std::string_view line)>;

/// Sends log lines to `sink` instead of standard error; an empty sink restores that. The sink is
/// called from any thread, one call at a time, and must not call back into Weft.
WEFT_API void set_log_sink(LogSink sink);
/// Lines below `level` are not logged. Default: warning, or the environment variable WEFT_LOG
/// (debug, info, warning, error, off).
WEFT_API void set_log_level(LogLevel level);

}  // namespace weft
