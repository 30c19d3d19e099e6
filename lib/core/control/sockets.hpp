// Names to endpoints, and sockets with the options that control connections need.
#pragma once

#include <functional>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/descriptor.hpp"
#include "control/address.hpp"
#include "control/asio.hpp"

namespace weft::core {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

/// The endpoints of a host, each once. Numbers are answered within the call; names on a thread of
/// its own, since looking one up blocks for as long as the system likes.
void resolve(const HostPort& where, std::function<void(Result<Endpoints>)> done);
/// Waits for resolve().
Result<Endpoints> resolve(const HostPort& where, Deadline deadline);

/// Of a host's endpoints, not empty, the one to tell to others: of those of this machine, if there
/// are any, the first beyond loopback, else the first.
const asio::ip::tcp::endpoint& one_to_tell(const Endpoints& endpoints);

/// A new socket, closed on exec, for `Socket` a socket or an acceptor.
template <typename Socket>
std::error_code open_socket(Socket& socket, const typename Socket::protocol_type& protocol);

/// Accepts a waiting connection, closed on exec; of tcp, or of any stream.
template <typename Acceptor, typename Socket>
std::error_code accept_from(Acceptor& acceptor, Socket& socket);

/// From now on it is watched, and closed, by `to`.
std::error_code hand_over(Descriptor descriptor, asio::posix::stream_descriptor& to);

/// Whether accepting failed because the process or the system has run out of something, which it
/// may have again later.
bool is_shortage(const std::error_code& error);

/// Why this process can't listen there.
Error bind_error(const std::string& where, const std::error_code& error);

/// No delay, keep alive, and what was sent must be acknowledged within `death_after`.
void set_options(asio::ip::tcp::socket& socket, Nanoseconds death_after);

std::string to_string(const asio::ip::tcp::endpoint& endpoint);

}  // namespace weft::core
