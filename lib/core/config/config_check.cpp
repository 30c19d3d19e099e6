#include "config/config_check.hpp"

#include <fmt/format.h>

#include <string>

#include "control/sockets.hpp"

namespace weft::core {
namespace {

/// As long as the listener waits.
constexpr std::chrono::seconds resolve_time{5};

/// The host in "host:port" or "[v6]:port"; everything if there is no port.
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

/// A numeric address of the host: the one that the listener tells to peers.
Result<std::string> ip_of(const std::string& host) {
  auto endpoints = resolve({host, {}}, Deadline::in(resolve_time));
  if (!endpoints) return fail(Code::invalid_argument, endpoints.error().message());
  return one_to_tell(*endpoints).address().to_string();
}

Result<std::string> rail_address(const Settings& settings) {
  const Config& config = settings.config;
  if (!config.rail_address.empty()) return ip_of(config.rail_address);
  if (!config.advertise.empty()) return ip_of(host_of(config.advertise));
  const std::string host = host_of(config.listen);
  if (host.empty()) return std::string("127.0.0.1");
  if (is_wildcard(host))
    return fail(Code::invalid_argument,
                fmt::format("{} names every interface, and needs {}, the address that peers use",
                            settings.spelled("listen"), settings.spelled("advertise")));
  return ip_of(host);
}

}  // namespace

Result<Config> checked_config(const Settings& settings) {
  Config config = settings.config;
  if (!config.metrics && !config.metrics_listen.empty())
    return fail(Code::invalid_argument,
                fmt::format("{} needs metrics, and {} is false", settings.spelled("metrics_listen"),
                            settings.spelled("metrics")));
  if (config.death_after / 2 < config.heartbeat)
    return fail(Code::invalid_argument,
                fmt::format("{} must be at least twice {}", settings.spelled("death_after"),
                            settings.spelled("heartbeat")));
  if (auto credentials = check_credential_files(credential_files(config)); !credentials)
    return fail(std::move(credentials.error()));
  auto ip = rail_address(settings);
  if (!ip) return fail(std::move(ip.error()));
  config.rail_address = std::move(*ip);
  return config;
}

CredentialFiles credential_files(const Config& config) {
  return {config.secret_file, config.tls_certificate, config.tls_key, config.tls_authorities,
          config.tls_check_host};
}

}  // namespace weft::core
