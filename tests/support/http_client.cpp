#include "http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "control/address.hpp"

namespace weft::test {
namespace {

constexpr timeval answer_time{30, 0};

core::Descriptor open_and_connect(const sockaddr* address, socklen_t length) {
  core::Descriptor made(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  setsockopt(made.get(), SOL_SOCKET, SO_RCVTIMEO, &answer_time, sizeof answer_time);
  setsockopt(made.get(), SOL_SOCKET, SO_SNDTIMEO, &answer_time, sizeof answer_time);
  if (::connect(made.get(), address, length) != 0)
    throw std::runtime_error(std::string("can't connect: ") + std::strerror(errno));
  return made;
}

core::Descriptor connect_to(const std::string& address) {
  constexpr std::string_view unix_prefix = "unix:";
  if (address.starts_with(unix_prefix)) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    address.copy(to.sun_path, sizeof to.sun_path - 1, unix_prefix.size());
    return open_and_connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  const auto parsed = core::parse_address(address);
  if (!parsed || !parsed->port) throw std::runtime_error("no address: " + address);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(*parsed->port);
  inet_pton(AF_INET, parsed->host.c_str(), &to.sin_addr);
  return open_and_connect(reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

}  // namespace

HttpClient::HttpClient(const std::string& address) : socket_(connect_to(address)) {}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string HttpClient::receive_all() {
  std::string received;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      throw std::runtime_error("the other side neither answers nor closes");
    if (count <= 0) return received;
    received.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string http_get(const std::string& address, std::string_view path) {
  HttpClient client(address);
  client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: weft\r\n\r\n");
  return client.receive_all();
}

std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

}  // namespace weft::test
