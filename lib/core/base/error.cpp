#include <fmt/format.h>

#include <weft/error.hpp>

namespace weft {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::not_found:
      return "not_found";
    case Code::unsupported:
      return "unsupported";
    case Code::unavailable:
      return "unavailable";
    case Code::permission_denied:
      return "permission_denied";
    case Code::out_of_memory:
      return "out_of_memory";
    case Code::queue_full:
      return "queue_full";
    case Code::timed_out:
      return "timed_out";
    case Code::cancelled:
      return "cancelled";
    case Code::stale:
      return "stale";
    case Code::peer_down:
      return "peer_down";
    case Code::protocol_mismatch:
      return "protocol_mismatch";
    case Code::fabric_failed:
      return "fabric_failed";
    case Code::remote_failed:
      return "remote_failed";
    case Code::quarantined:
      return "quarantined";
    case Code::closed:
      return "closed";
    case Code::forked:
      return "forked";
    case Code::internal:
      return "internal";
    case Code::corrupt:
      return "corrupt";
    case Code::policy_refused:
      return "policy_refused";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string line = fmt::format("{}: {}", weft::to_string(code_), message_);
  std::string context;
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) context += fmt::format("{}{} {}", context.empty() ? "" : ", ", what, value);
  };
  add("peer", peer_);
  add("rail", rail_);
  add("operation", operation_);
  if (fabric_code_ != 0) add("libfabric error", std::to_string(fabric_code_));
  if (!context.empty()) line += fmt::format(" ({})", context);
  return line;
}

}  // namespace weft
