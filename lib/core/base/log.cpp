#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>

#include "base/sync.hpp"

namespace weft {
namespace {

LogLevel initial_level() {
  static const std::map<std::string_view, LogLevel> names = {{"debug", LogLevel::debug},
                                                             {"info", LogLevel::info},
                                                             {"warning", LogLevel::warning},
                                                             {"error", LogLevel::error},
                                                             {"off", LogLevel::off}};
  const char* wanted = std::getenv("WEFT_LOG");
  const auto found = wanted != nullptr ? names.find(wanted) : names.end();
  return found != names.end() ? found->second : LogLevel::warning;
}

struct Logger {
  std::atomic<LogLevel> level{initial_level()};
  core::Mutex mutex;
  LogSink sink WEFT_GUARDED_BY(mutex);
  std::shared_ptr<spdlog::logger> standard_error =
      std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_st>());
};

// Never destroyed: threads of the application may log while statics go away.
Logger& logger() {
  static auto* instance = [] {
    auto* made = new Logger;
    made->standard_error->set_pattern("%Y-%m-%d %H:%M:%S.%e weft %l: %v");
    made->standard_error->set_level(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void set_log_sink(LogSink sink) {
  Logger& log = logger();
  const core::Lock lock(log.mutex);
  log.sink = std::move(sink);
}

void set_log_level(LogLevel level) {
  logger().level = level;
}

namespace core {

bool log_enabled(LogLevel level) noexcept {
  return level != LogLevel::off && level >= logger().level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view line) {
  const Lock lock(logger().mutex);
  if (logger().sink)
    logger().sink(level, line);
  else
    logger().standard_error->log(to_spdlog(level), line);
}

}  // namespace core
}  // namespace weft
