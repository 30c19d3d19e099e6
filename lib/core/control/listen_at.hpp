// Listening at all addresses of a name.
#pragma once

#include <list>
#include <weft/error.hpp>

#include "control/asio.hpp"
#include "control/sockets.hpp"

namespace weft::core {

/// Listens at all of the endpoints that this machine has, at one port: where that is 0, at the one
/// that the system chooses for the first. Fails if none is this machine's, or one can't be had.
/// `Acceptor`: of tcp, or of any stream.
template <typename Acceptor>
Result<std::list<Acceptor>> listen_at(asio::io_context& context, const Endpoints& endpoints);

/// Where an acceptor of tcp listens, with its port.
template <typename Acceptor>
asio::ip::tcp::endpoint endpoint_of(const Acceptor& acceptor);

}  // namespace weft::core
