#include "control/listen_at.hpp"

#include <cerrno>
#include <cstring>
#include <optional>

namespace weft::core {
namespace {

using asio::ip::tcp;
using AnyAcceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

/// Ports that the system chose for one address and that another one has in use.
constexpr int most_ports = 16;

/// A name may have addresses of other machines, and of a protocol that this one does not speak.
bool is_elsewhere(const std::error_code& error) {
  return error.value() == EADDRNOTAVAIL || error.value() == EAFNOSUPPORT;
}

template <typename Acceptor>
std::error_code listen_at_one(Acceptor& acceptor, const tcp::endpoint& endpoint) {
  std::error_code error = open_socket(acceptor, endpoint.protocol());
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  return error;
}

/// Goes on until one can't be had; `bound` holds those before.
template <typename Acceptor>
Result<void> listen_at_each(asio::io_context& context, const Endpoints& endpoints,
                            std::list<Acceptor>& bound) {
  std::optional<Error> elsewhere;
  for (tcp::endpoint each : endpoints) {
    if (each.port() == 0 && !bound.empty()) each.port(endpoint_of(bound.front()).port());
    const std::error_code error = listen_at_one(bound.emplace_back(context), each);
    if (!error) continue;
    bound.pop_back();
    if (!is_elsewhere(error)) return fail(bind_error(to_string(each), error));
    if (!elsewhere) elsewhere = bind_error(to_string(each), error);
  }
  if (bound.empty() && elsewhere) return fail(std::move(*elsewhere));
  return {};
}

}  // namespace

template <typename Acceptor>
tcp::endpoint endpoint_of(const Acceptor& acceptor) {
  std::error_code ignored;
  const auto bound = acceptor.local_endpoint(ignored);
  tcp::endpoint endpoint;
  if (bound.size() > endpoint.capacity()) return endpoint;
  endpoint.resize(bound.size());
  std::memcpy(endpoint.data(), bound.data(), bound.size());
  return endpoint;
}

template <typename Acceptor>
Result<std::list<Acceptor>> listen_at(asio::io_context& context, const Endpoints& endpoints) {
  for (int left = endpoints.front().port() == 0 ? most_ports : 1;; --left) {
    std::list<Acceptor> bound;
    auto listens = listen_at_each(context, endpoints, bound);
    if (listens) return bound;
    if (left <= 1 || bound.empty()) return fail(std::move(listens.error()));
  }
}

template tcp::endpoint endpoint_of(const tcp::acceptor&);
template tcp::endpoint endpoint_of(const AnyAcceptor&);
template Result<std::list<tcp::acceptor>> listen_at(asio::io_context&, const Endpoints&);
template Result<std::list<AnyAcceptor>> listen_at(asio::io_context&, const Endpoints&);

}  // namespace weft::core
