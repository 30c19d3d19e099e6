#include "control/host_socket.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/system_error.hpp"

namespace weft::core {
namespace {

/// What the kernel calls users that have no number in this user namespace.
constexpr uid_t no_user = 65534;  // kernel.overflowuid

constexpr std::size_t control_bytes = CMSG_SPACE(sizeof(int));

}  // namespace

SocketAddress SocketAddress::abstract(const std::string& name) {
  SocketAddress out;
  out.address_.sun_family = AF_UNIX;
  // It begins with a zero byte, and its length counts.
  std::memcpy(out.address_.sun_path + 1, name.data(), name.size());
  out.length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return out;
}

Result<SocketAddress> SocketAddress::file(const std::string& path) {
  SocketAddress out;
  if (path.size() >= sizeof out.address_.sun_path)
    return fail(Code::invalid_argument, fmt::format("'{}' is too long for a Unix socket: {} bytes",
                                                    path, sizeof out.address_.sun_path - 1));
  out.address_.sun_family = AF_UNIX;
  std::memcpy(out.address_.sun_path, path.data(), path.size());
  out.length_ = sizeof out.address_;
  return out;
}

std::string socket_file(const std::string& folder, const std::string& name) {
  return folder + "/" + name + ".sock";
}

Result<Descriptor> open_host_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (made.get() < 0) return fail(system_error("socket"));
  return made;
}

Result<void> check_user(int socket) {
  ucred other{};
  socklen_t length = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0)
    return fail(system_error("getsockopt of SO_PEERCRED"));
  if (other.uid == no_user)
    return fail(
        Code::permission_denied,
        "the user that runs it has no number in this user namespace, or is nobody: run both "
        "as one user that both know");
  if (other.uid == ::geteuid()) return {};
  return fail(Code::permission_denied,
              fmt::format("user {} runs it, and user {} this engine: run both as one user",
                          other.uid, ::geteuid()));
}

void send_answer(int socket, const HostAnswer& answer, const Descriptor& descriptor) noexcept {
  iovec bytes{const_cast<HostAnswer*>(&answer), sizeof answer};
  alignas(cmsghdr) std::array<std::byte, control_bytes> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptor.get() >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = descriptor.get();
    std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  }
  [[maybe_unused]] const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

Result<Answered> receive_answer(int socket) {
  HostAnswer answer;
  iovec bytes{&answer, sizeof answer};
  alignas(cmsghdr) std::array<std::byte, control_bytes> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return fail(system_error("recvmsg"));
  Answered answered;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int number = -1;
    std::memcpy(&number, CMSG_DATA(part), sizeof number);
    answered.descriptor = Descriptor(number);
  }
  if (got == 0) return fail(Code::unavailable, "it closed the connection without an answer");
  if (got != static_cast<ssize_t>(sizeof answer))
    return fail(Code::protocol_mismatch, fmt::format("an answer of {} bytes", got));
  if (answer.error != 0) {
    errno = answer.error;
    return fail(system_error("its answer"));
  }
  if (answered.descriptor.get() < 0)
    return fail(Code::protocol_mismatch, "an answer without a descriptor");
  answered.nonce = answer.nonce;
  return answered;
}

const std::string& boot_id() {
  static const std::string& id = *new std::string([] {
    std::array<char, 64> text{};
    const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    const ssize_t got = file.get() < 0 ? -1 : ::read(file.get(), text.data(), text.size());
    std::string read(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!read.empty() && read.back() == '\n') read.pop_back();
    return read;
  }());
  return id;
}

}  // namespace weft::core
