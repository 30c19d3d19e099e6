#include "control/host_peer.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/system_error.hpp"

namespace weft::core {
namespace {

Result<Descriptor> connect_to(const SocketAddress& address) {
  auto socket = open_host_socket();
  if (!socket) return socket;
  if (::connect(socket->get(), address.get(), address.length()) != 0)
    return fail(system_error("connect"));
  return check_user(socket->get()).map([&] { return std::move(*socket); });
}

Result<Descriptor> connect_to(const HostPeer& peer) {
  auto near = connect_to(SocketAddress::abstract(peer.socket));
  if (near || near.error().code() == Code::permission_denied) return near;
  if (near.error().operation() != "connect") return near;  // no descriptor is left
  if (peer.folder.empty())
    return fail(Code::unavailable,
                "its socket is in another network namespace, and this engine has no host_dir: set "
                "host_dir (WEFT_HOST_DIR) of both to a folder that both mount");
  auto far = SocketAddress::file(socket_file(peer.folder, peer.socket))
                 .and_then([](const SocketAddress& address) { return connect_to(address); });
  if (far || far.error().code() == Code::permission_denied) return far;
  return fail(Code::unavailable,
              fmt::format("its socket is neither in this network namespace nor in host_dir '{}' "
                          "({}): set host_dir (WEFT_HOST_DIR) of both to a folder that both mount",
                          peer.folder, far.error().message()));
}

class BySocket final : public HostProcess {
 public:
  BySocket(Process process, HostPeer peer)
      : HostProcess(std::move(process)), peer_(std::move(peer)) {}

  Result<Descriptor> open(const Sought& sought) const override {
    if (silent_) return fail(Code::timed_out, "the peer's socket does not answer");
    return ask(peer_, sought.name)
        .and_then([&](const Descriptor& socket) { return answer_from(socket); })
        .and_then([&](const Answered& answered) {
          // Anew, with this process's own flags: a pipe, for one, must not block.
          return open_link(fmt::format("/proc/self/fd/{}", answered.descriptor.get()), sought.kind,
                           sought.mode);
        });
  }
  bool waits() const noexcept override { return true; }
  std::int32_t pid() const noexcept override { return 0; }

 private:
  Result<Answered> answer_from(const Descriptor& socket) const {
    const auto deadline = Deadline::in(host_answer_time);
    pollfd readable{socket.get(), POLLIN, 0};
    int ready = -1;
    do {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Clock::now());
      ready = ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    } while (ready < 0 && errno == EINTR);
    if (ready > 0) return receive_answer(socket.get());
    silent_ = true;  // those who meet other peers, or import, wait once
    return fail(Code::timed_out, "the peer's socket does not answer");
  }

  const HostPeer peer_;
  mutable std::atomic<bool> silent_{false};
};

}  // namespace

Result<Descriptor> ask(const HostPeer& peer, const DescriptorName& name) {
  return connect_to(peer).and_then([&](Descriptor socket) -> Result<Descriptor> {
    HostQuestion question;
    question.pass = peer.pass;
    question.name = name;
    if (::send(socket.get(), &question, sizeof question, MSG_NOSIGNAL) < 0)
      return fail(system_error("send to the peer's socket"));
    return socket;
  });
}

Result<std::shared_ptr<const HostProcess>> process_by_socket(HostPeer peer,
                                                             const Answered& answered) {
  const std::string link = fmt::format("/proc/self/fd/{}", answered.descriptor.get());
  std::array<char, 32> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  if (length < 0) return fail(system_error(link));
  const std::string_view kind(target.data(), static_cast<std::size_t>(length));
  // Linux has its own file system for them since 6.9.
  if (!kind.starts_with("anon_inode:[pidfd]") && !kind.starts_with("pidfd:"))
    return fail(Code::protocol_mismatch, "the peer's socket does not show its process");
  Descriptor process(::fcntl(answered.descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (process.get() < 0) return fail(system_error("fcntl of a process's descriptor"));
  return std::make_shared<BySocket>(Process(std::move(process)), std::move(peer));
}

}  // namespace weft::core
