#include "control/address.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace weft::core {
namespace {

constexpr std::size_t longest_host = 255;  // RFC 1035

template <typename... Args>
tl::unexpected<Error> bad(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Code::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

Result<std::uint16_t> parse_port(std::string_view address, std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return bad("'{}' is no address: the port is a number from 0 to 65535", address);
  return port;
}

}  // namespace

Result<HostPort> parse_address(std::string_view text) {
  const std::string_view shown = text.substr(0, longest_host + 16);
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (text.size() > shown.size() || std::any_of(text.begin(), text.end(), is_odd))
    return bad("an address is 'host:port', without blanks and of at most {} bytes", longest_host);

  std::string_view host = text, rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return bad("'{}' is no address: ']' is missing", shown);
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':'))
      return bad("'{}' is no address: ':port' must follow ']'", shown);
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    rest = text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos)
      return bad("'{}' is no address: IPv6 numbers are written in brackets, as in [::1]:7000",
                 shown);
  }
  if (host.empty())
    return bad("'{}' names no host: write for example 127.0.0.1:7000 or [::1]:7000", shown);

  HostPort out{std::string(host), std::nullopt};
  if (!rest.empty()) {
    Result<std::uint16_t> port = parse_port(shown, rest.substr(1));
    if (!port) return fail(std::move(port.error()));
    out.port = *port;
  }
  return out;
}

std::string format_address(std::string_view host, std::uint16_t port) {
  const bool v6 = host.find(':') != std::string_view::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace weft::core
