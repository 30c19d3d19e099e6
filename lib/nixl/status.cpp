#include "nixl/status.hpp"

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
  core::log(LogLevel::error, "NIXL backend: {}: {}", what, error.to_string());
  return status_of(error.code());
}

}  // namespace weft::nixl
