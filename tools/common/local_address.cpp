#include "common/local_address.hpp"

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

/// Its number, without a port; empty if it is of neither IP.
std::string text_of(const sockaddr& address) {
  const socklen_t size = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = "";
  getnameinfo(&address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool is_of_an_interface(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next)
    if (each->ifa_addr != nullptr && text_of(*each->ifa_addr) == address) return true;
  return false;
}

}  // namespace

std::string local_address_towards(const std::string& peer) {
  const Addresses found = resolve(peer);
  if (!found) return {};
  // Connecting a datagram socket sends nothing, but chooses the route.
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_storage storage{};
  auto& local = reinterpret_cast<sockaddr&>(storage);
  socklen_t size = sizeof storage;
  std::string text;
  if (connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket, &local, &size) == 0)
    text = text_of(local);
  close(socket);
  return text;
}

bool is_this_machine(const std::string& peer) {
  const Addresses found = resolve(peer);
  if (!found) return false;
  const std::string address = text_of(*found->ai_addr);
  // All of 127.0.0.0/8 is, though the interface has one of them only.
  return address.starts_with("127.") || is_of_an_interface(address);
}

}  // namespace weft::tool
