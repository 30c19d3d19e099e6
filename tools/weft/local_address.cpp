#include "local_address.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace weft::tool {
namespace {

/// Numeric; empty where they can't be told.
struct Ends {
  std::string local, remote;
};

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
              NI_NUMERICHOST);
  return text;
}

/// Connecting a datagram socket sends nothing, but chooses the route.
Ends ends_towards(const std::string& peer) {
  const auto colon = peer.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = peer.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), peer.substr(colon + 1).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);

  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  Ends ends;
  sockaddr_storage local{}, remote{};
  socklen_t local_size = sizeof local, remote_size = sizeof remote;
  if (connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr*>(&local), &local_size) == 0 &&
      getpeername(socket, reinterpret_cast<sockaddr*>(&remote), &remote_size) == 0)
    ends = {text_of(local, local_size), text_of(remote, remote_size)};
  close(socket);
  return ends;
}

}  // namespace

std::string local_address_towards(const std::string& peer) {
  return ends_towards(peer).local;
}

/// What goes to one's own address leaves from it.
bool is_this_machine(const std::string& peer) {
  const Ends ends = ends_towards(peer);
  return !ends.local.empty() && ends.local == ends.remote;
}

}  // namespace weft::tool
