#include "config/config_check.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <memory>
#include <string>

namespace weft::core {
namespace {

constexpr std::size_t max_name = 255;
constexpr unsigned max_rails = 64;
constexpr std::size_t largest_message = std::size_t{1} << 20;
// Bounds whose product, the window in bytes, fits 64 bits.
constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 40;
constexpr std::size_t largest_window = std::size_t{1} << 20;
constexpr std::size_t largest_bounce_buffer = std::size_t{64} << 20;

template <typename Value>
Result<void> within(std::string_view what, Value value, Value least, Value most) {
  if (value >= least && value <= most) return {};
  return fail(Code::invalid_argument,
              fmt::format("{} is {}, and must be from {} to {}", what, value, least, most));
}

/// "host:port" or "[v6]:port" to the host; everything if there is no port.
std::string host_of(const std::string& address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  const auto colon = address.rfind(':');
  // More than one colon without brackets: a bare IPv6 address.
  if (colon == std::string::npos || address.find(':') != colon) return address;
  return address.substr(0, colon);
}

bool is_wildcard(const std::string& ip) {
  return ip == "0.0.0.0" || ip == "::";
}

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// A numeric address of the host; a name is resolved, as the listener will do too.
Result<std::string> ip_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int result = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, AddressDeleter> owned(result == 0 ? list : nullptr);
  char text[INET6_ADDRSTRLEN] = "";
  if (!owned || getnameinfo(owned->ai_addr, owned->ai_addrlen, text, sizeof text, nullptr, 0,
                            NI_NUMERICHOST) != 0)
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no address of this machine: {}", host, gai_strerror(result)));
  return std::string(text);
}

Result<std::string> rail_address(const Config& config) {
  if (!config.rail_address.empty()) return ip_of(config.rail_address);
  if (!config.advertise.empty()) return ip_of(host_of(config.advertise));
  const std::string host = host_of(config.listen);
  if (host.empty()) return std::string("127.0.0.1");
  if (is_wildcard(host))
    return fail(Code::invalid_argument,
                "listening on every interface needs Config::advertise, the address that peers use");
  return ip_of(host);
}

}  // namespace

Result<Config> checked_config(Config config) {
  const Nanoseconds zero = Nanoseconds::zero();
  auto checked =
      within<std::size_t>("the length of Config::name", config.name.size(), 0, max_name)
          .and_then([&] { return within("Config::rails", config.rails, 0U, max_rails); })
          .and_then([&] { return within("Config::max_nics", config.max_nics, 1U, max_rails); })
          .and_then([&] { return within("Config::threads", config.threads, 0U, max_rails); })
          .and_then([&] {
            return within<std::uint64_t>("Config::chunk_bytes", config.chunk_bytes, 0,
                                         largest_chunk);
          })
          .and_then([&] {
            return within<std::size_t>("Config::window", config.window, 0, largest_window);
          })
          .and_then([&] {
            return within<std::size_t>("Config::max_message", config.max_message, 1,
                                       largest_message);
          })
          .and_then([&] {
            return within<std::size_t>("Config::message_credits", config.message_credits, 2, 1024);
          })
          .and_then([&] {
            return within<std::size_t>("Config::bounce_buffers", config.bounce_buffers, 1, 1024);
          })
          .and_then([&] {
            return within<std::size_t>("Config::bounce_buffer_bytes", config.bounce_buffer_bytes, 1,
                                       largest_bounce_buffer);
          });
  if (!checked) return fail(std::move(checked.error()));
  if (config.max_transfers == 0 || config.send_queue == 0)
    return fail(Code::invalid_argument,
                "Config::max_transfers and Config::send_queue must not be 0");
  if (!config.metrics && !config.metrics_listen.empty())
    return fail(Code::invalid_argument,
                "Config::metrics_listen needs Config::metrics: there would be nothing to tell");
  if (config.default_timeout <= zero || config.spin < zero)
    return fail(Code::invalid_argument,
                "Config::default_timeout must be positive, and Config::spin not negative");
  if (config.heartbeat <= zero || config.death_after / 2 < config.heartbeat)
    return fail(
        Code::invalid_argument,
        "Config::heartbeat must be positive, and Config::death_after at least twice as long");
  if (auto credentials = check_credential_files(credential_files(config)); !credentials)
    return fail(std::move(credentials.error()));
  auto ip = rail_address(config);
  if (!ip) return fail(std::move(ip.error()));
  config.rail_address = std::move(*ip);
  return config;
}

CredentialFiles credential_files(const Config& config) {
  return {config.secret_file, config.tls_certificate, config.tls_key, config.tls_authorities,
          config.tls_check_host};
}

}  // namespace weft::core
