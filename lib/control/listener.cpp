#include "control/listener.hpp"

#include <fmt/core.h>

#include "control/address.hpp"
#include "control/sockets.hpp"

namespace weft::core {
namespace {

using asio::ip::tcp;

constexpr std::chrono::seconds resolve_time{5};
/// How long no connection is accepted when the process has run out of descriptors.
constexpr std::chrono::milliseconds pause_time{100};

Result<void> check_exposure(const ControlConfig& config, const tcp::endpoint& endpoint) {
  const asio::ip::address& address = endpoint.address();
  const bool guarded = !config.credentials.empty() || config.allow_unauthenticated_network;
  if (!address.is_loopback() && !guarded)
    return fail(Code::permission_denied,
                fmt::format("listening on {} would let anybody on the network in without "
                            "authentication: name a secret_file or certificates, or set "
                            "allow_unauthenticated_network to want that",
                            config.listen));
  if (address.is_unspecified() && config.advertise.empty())
    return fail(Code::invalid_argument,
                fmt::format("listening on all interfaces ({}) needs `advertise`: the address at "
                            "which peers reach this engine",
                            config.listen));
  return {};
}

Result<std::string> advertised(const ControlConfig& config, const tcp::endpoint& bound) {
  if (config.advertise.empty()) return to_string(bound);
  Result<HostPort> parsed = parse_address(config.advertise);
  if (!parsed) return fail(std::move(parsed.error()));
  const std::uint16_t port = parsed->port.value_or(0);
  return format_address(parsed->host, port == 0 ? bound.port() : port);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(asio::io_context& context,
                                                 const ControlConfig& config) {
  Result<HostPort> where = parse_address(config.listen);
  if (!where) return fail(std::move(where.error()));
  Result<Endpoints> endpoints = resolve(*where, Deadline::in(resolve_time));
  if (!endpoints) return fail(std::move(endpoints.error()));
  const tcp::endpoint endpoint = endpoints->front();
  if (Result<void> safe = check_exposure(config, endpoint); !safe)
    return fail(std::move(safe.error()));

  std::unique_ptr<Listener> listener(new Listener(context));
  if (Result<void> bound = listener->bind(endpoint); !bound) return fail(std::move(bound.error()));
  std::error_code ignored;
  Result<std::string> address = advertised(config, listener->acceptor_.local_endpoint(ignored));
  if (!address) return fail(std::move(address.error()));
  listener->address_ = std::move(*address);
  return listener;
}

Result<void> Listener::bind(const tcp::endpoint& endpoint) {
  std::error_code error = open_socket(acceptor_, endpoint.protocol());
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (error) return fail(bind_error(to_string(endpoint), error));
  return {};
}

void Listener::start(Accepted accepted) {
  accepted_ = std::move(accepted);
  wait();
}

void Listener::wait() {
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](const std::error_code& error) {
    if (error || !acceptor_.is_open()) return;
    // One at a time, so that a flood of strangers does not keep other connections waiting.
    if (accept_one()) return wait();
    pause_.expires_after(pause_time);
    pause_.async_wait([this](const std::error_code& cancelled) {
      if (!cancelled && acceptor_.is_open()) wait();
    });
  });
}

/// False if the process or the system has run out of something.
bool Listener::accept_one() {
  tcp::socket socket(acceptor_.get_executor());
  const std::error_code error = accept_from(acceptor_, socket);
  if (!error) accepted_(std::move(socket));
  return !is_shortage(error);
}

void Listener::close() {
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

}  // namespace weft::core
