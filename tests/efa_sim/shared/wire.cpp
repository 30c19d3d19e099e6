#include "wire.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace weft::efa_sim {
namespace {

constexpr std::size_t most_files = 4;

union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(most_files * sizeof(int))];
};

bool address_of(const char* path, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::strcpy(address.sun_path, path);
  return true;
}

Descriptor new_socket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

}  // namespace

bool send_bytes(int socket, const void* data, std::size_t bytes, const std::vector<int>& files) {
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (!files.empty()) {
    const std::size_t length = files.size() * sizeof(int);
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(length);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(header), files.data(), length);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

bool receive_bytes(int socket, void* data, std::size_t bytes, Descriptors& files) {
  iovec part{data, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  errno = 0;
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); got > 0 && header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      files.emplace_back(number);
    }
  }
  return got == static_cast<ssize_t>(bytes);
}

Descriptor connect_to(const char* path) {
  sockaddr_un address;
  if (!address_of(path, address)) return {};
  Descriptor socket = new_socket();
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (!socket || connect(socket.get(), where, sizeof address) != 0) return {};
  // The device answers at once; this only keeps a process from waiting for a device that hangs.
  const timeval patience{30, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

Descriptor listen_at(const char* path) {
  sockaddr_un address;
  if (!address_of(path, address)) return {};
  Descriptor socket = new_socket();
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (!socket || bind(socket.get(), where, sizeof address) != 0 || listen(socket.get(), 128) != 0)
    return {};
  return socket;
}

std::optional<Received<Reply>> greet(int socket, std::int32_t host) {
  // Where Yama guards the memory of processes, it wants leave.
  ucred device{};
  socklen_t size = sizeof device;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &device, &size) == 0)
    prctl(PR_SET_PTRACER, device.pid, 0, 0, 0);
  static const volatile std::uint64_t cookie = hello_cookie;
  Request hello = request(Verb::hello);
  hello.hello = {host, reinterpret_cast<std::uint64_t>(&cookie)};
  if (!send_message(socket, hello)) return std::nullopt;
  return receive_message<Reply>(socket);
}

Request request(Verb verb, std::uint32_t object, std::uint32_t number) {
  Request request{};
  request.version = wire_version;
  request.verb = verb;
  request.object = object;
  request.number = number;
  return request;
}

}  // namespace weft::efa_sim
