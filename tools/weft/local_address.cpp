#include "local_address.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace weft::tool {

std::string local_address_towards(const std::string& peer) {
  const auto colon = peer.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = peer.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), peer.substr(colon + 1).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);

  // Connecting a datagram socket sends nothing, but chooses the route.
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  char text[NI_MAXHOST] = "";
  if (connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket, reinterpret_cast<sockaddr*>(&local), &size) == 0)
    getnameinfo(reinterpret_cast<const sockaddr*>(&local), size, text, sizeof text, nullptr, 0,
                NI_NUMERICHOST);
  close(socket);
  return text;
}

}  // namespace weft::tool
