#include "nixl/status.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/log.hpp"

namespace weft::nixl {

abi::Status status_of(Code code) noexcept {
  switch (code) {
    case Code::invalid_argument:
      return abi::Status::invalid_param;
    case Code::not_found:
    case Code::stale:
      return abi::Status::not_found;
    case Code::unsupported:
      return abi::Status::not_supported;
    case Code::permission_denied:
    case Code::policy_refused:
      return abi::Status::not_allowed;
    case Code::cancelled:
      return abi::Status::cancelled;
    case Code::peer_down:
      return abi::Status::remote_disconnect;
    case Code::protocol_mismatch:
      return abi::Status::mismatch;
    default:
      return abi::Status::backend;
  }
}

abi::Status refuse(const char* what, const Error& error) {
  static LogLimit& limit = *new LogLimit;  // threads may log while statics go away
  if (core::log_enabled(LogLevel::debug))
    core::log(LogLevel::error, "NIXL backend: {}: {}", what, error.to_string());
  else if (const auto line = limit.line(what, error, Clock::now()))
    core::log(LogLevel::error, "NIXL backend: {}", *line);
  return status_of(error.code());
}

std::optional<std::string> LogLimit::line(const std::string& what, const Error& error,
                                          Clock::time_point now) {
  const core::Lock lock(mutex_);
  if (kinds_.size() >= most_kinds)
    std::erase_if(kinds_, [&](const auto& each) { return now - each.second.since >= period; });
  Kind& kind = kinds_[{what, error.code()}];
  if (now - kind.since >= period) kind = {now, 0, kind.dropped};
  if (++kind.lines > most_lines) {
    ++kind.dropped;
    return std::nullopt;
  }
  const auto dropped = std::exchange(kind.dropped, 0);
  return fmt::format("{}: {}{}", what, error.to_string(),
                     dropped == 0 ? "" : fmt::format(" (and {} like it before)", dropped));
}

}  // namespace weft::nixl
