#include "local_address.hpp"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace weft::tool {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Of "host:port"; null where there are none.
Addresses resolve(const std::string& peer) {
  const auto colon = peer.rfind(':');
  if (colon == std::string::npos) return {nullptr, freeaddrinfo};
  std::string host = peer.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), peer.substr(colon + 1).c_str(), &hints, &found) != 0)
    return {nullptr, freeaddrinfo};
  return {found, freeaddrinfo};
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

/// Whatever their ports.
bool are_equal(const sockaddr& one, const sockaddr& other) {
  if (one.sa_family != other.sa_family) return false;
  if (one.sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(one).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(other).sin_addr.s_addr;
  return one.sa_family == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6&>(one).sin6_addr,
                            &reinterpret_cast<const sockaddr_in6&>(other).sin6_addr);
}

bool is_of_an_interface(const sockaddr& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next)
    if (each->ifa_addr != nullptr && are_equal(*each->ifa_addr, address)) return true;
  return false;
}

}  // namespace

std::string local_address_towards(const std::string& peer) {
  const Addresses found = resolve(peer);
  if (!found) return {};
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

bool is_this_machine(const std::string& peer) {
  const Addresses found = resolve(peer);
  return found && (is_loopback(*found->ai_addr) || is_of_an_interface(*found->ai_addr));
}

}  // namespace weft::tool
