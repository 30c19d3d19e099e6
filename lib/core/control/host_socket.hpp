// The Unix socket of an engine, where processes of its host that share no /proc with it ask for
// descriptors: what they say, and how it is found. A question and its answer are a datagram each,
// over a connection of their own.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/process.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {

/// Changes whenever the two structures below do.
inline constexpr std::uint32_t host_socket_version = 1;

struct HostQuestion {
  std::array<char, 8> magic{'w', 'e', 'f', 't', 'h', 'o', 's', 't'};
  std::uint32_t version = host_socket_version;
  std::uint32_t reserved = 0;
  HostPass pass{};
  DescriptorName name;  // zeros: of the process, with the nonce of its proof page
};

/// With the descriptor, if there is no error.
struct HostAnswer {
  std::int32_t error = 0;  // an errno
  std::uint32_t reserved = 0;
  HostNonce nonce{};
};

/// Where sockets of that name are.
class SocketAddress {
 public:
  /// In the abstract space of a network namespace.
  static SocketAddress abstract(const std::string& name);
  /// A file, which processes of other network namespaces reach too.
  static Result<SocketAddress> file(const std::string& path);
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t length() const noexcept { return length_; }

 private:
  sockaddr_un address_{};
  socklen_t length_ = 0;
};

/// The file of a socket in `host_dir`.
std::string socket_file(const std::string& folder, const std::string& name);

/// A new socket for questions or for listening, which does not block.
Result<Descriptor> open_host_socket();
/// The other end of a connection belongs to this process's user, by the kernel's word.
Result<void> check_user(int socket);

/// Not if there is no room for it, which a socket has that was not written to.
void send_answer(int socket, const HostAnswer& answer, const Descriptor& descriptor) noexcept;
struct Answered {
  HostNonce nonce{};
  Descriptor descriptor;
};
/// Does not wait.
Result<Answered> receive_answer(int socket);

/// This boot of the host's kernel, the same in all its containers; empty: not known.
const std::string& boot_id();

}  // namespace weft::core
