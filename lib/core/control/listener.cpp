#include "control/listener.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.hpp"
#include "control/address.hpp"
#include "control/listen_at.hpp"

namespace weft::core {
namespace {

using asio::ip::tcp;

constexpr std::chrono::seconds resolve_time{5};
/// How long no connection is accepted when the process has run out of descriptors.
constexpr std::chrono::milliseconds pause_time{100};

/// As asked for, and which address that is.
std::string spelled(const ControlConfig& config, const tcp::endpoint& endpoint) {
  const std::string address = to_string(endpoint);
  return address == config.listen ? address : fmt::format("{} ({})", config.listen, address);
}

Result<void> check_exposure(const ControlConfig& config, const tcp::endpoint& endpoint) {
  const asio::ip::address& address = endpoint.address();
  const bool guarded = !config.credentials.empty() || config.allow_unauthenticated_network;
  if (!address.is_loopback() && !guarded)
    return fail(Code::permission_denied,
                fmt::format("listening on {} would let anybody on the network in without "
                            "authentication: name a secret_file or certificates, or set "
                            "allow_unauthenticated_network to want that",
                            spelled(config, endpoint)));
  if (address.is_unspecified() && config.advertise.empty())
    return fail(Code::invalid_argument,
                fmt::format("listening on all interfaces ({}) needs `advertise`: the address at "
                            "which peers reach this engine",
                            config.listen));
  return {};
}

Result<std::string> advertised(const ControlConfig& config, const Endpoints& bound) {
  if (config.advertise.empty()) return to_string(one_to_tell(bound));
  Result<HostPort> parsed = parse_address(config.advertise);
  if (!parsed) return fail(std::move(parsed.error()));
  const std::uint16_t port = parsed->port.value_or(0);
  return format_address(parsed->host, port == 0 ? bound.front().port() : port);
}

void tell(const ControlConfig& config, const Endpoints& bound) {
  if (bound.size() < 2) return;
  std::vector<std::string> addresses;
  for (const tcp::endpoint& each : bound) addresses.push_back(to_string(each));
  log(LogLevel::info, "listening on all addresses of {}: {}", config.listen,
      fmt::join(addresses, ", "));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& context,
                                                 const ControlConfig& config) {
  Result<HostPort> where = parse_address(config.listen);
  if (!where) return fail(std::move(where.error()));
  Result<Endpoints> endpoints = resolve(*where, Deadline::in(resolve_time));
  if (!endpoints) return fail(std::move(endpoints.error()));
  return open(context, config, *endpoints);
}

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& context,
                                                 const ControlConfig& config,
                                                 const Endpoints& endpoints) {
  for (const tcp::endpoint& each : endpoints)
    if (Result<void> safe = check_exposure(config, each); !safe)
      return fail(std::move(safe.error()));
  auto acceptors = listen_at<tcp::acceptor>(context, endpoints);
  if (!acceptors) return fail(std::move(acceptors.error()));
  std::unique_ptr<Listener> listener(new Listener());
  for (tcp::acceptor& each : *acceptors) listener->bound_.emplace_back(context, std::move(each));
  const Endpoints bound = listener->bound();
  Result<std::string> address = advertised(config, bound);
  if (!address) return fail(std::move(address.error()));
  listener->address_ = std::move(*address);
  tell(config, bound);
  return listener;
}

Endpoints Listener::bound() const {
  Endpoints all;
  for (const Bound& each : bound_) all.push_back(endpoint_of(each.acceptor));
  return all;
}

void Listener::start(Accepted accepted) {
  accepted_ = std::move(accepted);
  for (Bound& each : bound_) wait(each);
}

void Listener::wait(Bound& bound) {
  bound.acceptor.async_wait(tcp::acceptor::wait_read, [this, &bound](const std::error_code& error) {
    if (error || !bound.acceptor.is_open()) return;
    // One at a time, so that a flood of strangers does not keep other connections waiting.
    if (accept_one(bound)) return wait(bound);
    bound.pause.expires_after(pause_time);
    bound.pause.async_wait([this, &bound](const std::error_code& cancelled) {
      if (!cancelled && bound.acceptor.is_open()) wait(bound);
    });
  });
}

/// False if the process or the system has run out of something.
bool Listener::accept_one(Bound& bound) {
  tcp::socket socket(bound.acceptor.get_executor());
  const std::error_code error = accept_from(bound.acceptor, socket);
  if (!error) accepted_(std::move(socket));
  return !is_shortage(error);
}

void Listener::close() {
  std::error_code ignored;
  for (Bound& each : bound_) {
    each.acceptor.close(ignored);
    each.pause.cancel();
  }
}

}  // namespace weft::core
