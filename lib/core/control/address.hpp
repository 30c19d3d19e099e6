// Addresses as people write them: "host:port", "1.2.3.4:port", "[::1]:port".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <weft/error.hpp>

namespace weft::core {

struct HostPort {
  std::string host;  // a name or a number, without brackets
  std::optional<std::uint16_t> port;
};

/// Splits an address; the port may be missing, the host may not.
Result<HostPort> parse_address(std::string_view text);

/// The inverse; puts brackets around IPv6 numbers.
std::string format_address(std::string_view host, std::uint16_t port);

}  // namespace weft::core
