// A peer of this host that shares no /proc with this process: what it shows, by its socket.
#pragma once

#include <memory>
#include <string>
#include <weft/error.hpp>

#include "control/host_socket.hpp"

namespace weft::core {

/// The other side's control thread answers within microseconds, if it is not stopped. (A guess.)
inline constexpr std::chrono::seconds host_answer_time{1};

/// How this process finds a peer's socket, and what it has to say there.
struct HostPeer {
  std::string socket;  // its name
  std::string folder;  // this engine's host_dir
  HostPass pass{};
};

/// Puts a question; the answer is to come over that socket. Does not wait. An error says what
/// setting would help.
Result<Descriptor> ask(const HostPeer& peer, const DescriptorName& name);

/// Of the answer to a question for the process.
Result<std::shared_ptr<const HostProcess>> process_by_socket(HostPeer peer,
                                                             const Answered& answered);

}  // namespace weft::core
