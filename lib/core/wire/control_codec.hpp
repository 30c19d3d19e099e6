// Control messages as values, and as the frames that carry them (control.fbs).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "wire/introduction.hpp"
#include "wire/notice.hpp"

namespace weft::core {

/// What a peer has to say to an engine's socket, told to it alone. All zeros open nothing.
using HostPass = std::array<std::byte, 16>;

/// How a process of the same host finds an engine's: its proof page is /proc/<pid>/fd/<descriptor>,
/// where both see one /proc.
struct HostClaim {
  std::uint32_t pid = 0;  // 0: the engine has no such page
  std::uint32_t descriptor = 0;
  std::string boot = {};    // of the host's kernel (random/boot_id); empty: not known
  std::string socket = {};  // the name of its Unix socket; empty: it has none
  HostPass pass = {};       // for that
};
using HostNonce = std::array<std::byte, 32>;

struct Hello {
  Introduction introduction;
  HostClaim host;
};
struct Proof {
  bool proven = false;
  HostNonce nonce{};   // if proven
  std::string reason;  // if not
};
struct Choice {};
struct Duplicate {
  std::uint64_t token = 0;
};
struct Lost {};
struct Ready {
  std::vector<RailOut> out = {};
};
struct Refusal {
  Code code = Code::internal;
  std::string reason;
};
struct Heartbeat {
  bool progressing = true;
};
struct Goodbye {
  std::string reason;
  std::uint64_t taken = 0;  // packets of the receiver's messages, in all
};
/// A message that only later versions of the protocol know.
struct UnknownMessage {};

using ControlMessage = std::variant<Hello, Proof, Choice, Duplicate, Lost, Ready, Refusal,
                                    Heartbeat, Goodbye, Notice, UnknownMessage>;

/// Bounds on what is sent and accepted, in bytes unless they say otherwise; `sentence` is another
/// (sentence.hpp).
namespace limits {
inline constexpr std::size_t frame_header = 4;  // little-endian count of the bytes that follow
inline constexpr std::size_t name = 255;
inline constexpr std::size_t address = 512;
inline constexpr std::size_t socket = 64;
inline constexpr std::size_t rails = 256;  // rails
inline constexpr std::size_t grant = std::size_t{1} << 20;
/// A message with its head; weft::Config::max_message is 1 MiB at most.
inline constexpr std::size_t message = (std::size_t{1} << 20) + 64;
inline constexpr std::size_t frame = grant + 4096;
inline constexpr std::size_t checked_ranges = 1024;  // in one request
inline constexpr std::size_t renewed_keys = 16384;   // in one notice
inline constexpr std::size_t lost_keys = rails;      // lost ones among these
inline constexpr std::size_t handle = 1024;          // of memory that is lent
/// All that a stranger may send before the two have met.
inline constexpr std::size_t stranger = std::size_t{64} << 10;
}  // namespace limits

/// A frame with its header. `invalid_argument` if something in the message is over its bound;
/// sentences are cut.
Result<Blob> encode(const ControlMessage& message);

/// Reads a whole frame, header included, from an address that is a multiple of 8. Trusts nothing in
/// it: `protocol_mismatch` says what is wrong.
Result<ControlMessage> decode(Bytes frame);

}  // namespace weft::core
