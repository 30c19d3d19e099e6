/// @file
/// Errors as values. Nothing in Weft throws across the public API, aborts, or exits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <weft/export.hpp>

namespace weft {

/// The kind of failure, for a program to switch on.
enum class Code : std::uint8_t {
  invalid_argument = 1,  ///< The call itself is wrong: a range outside its segment, a bad option.
  not_found,             ///< No such name, model, peer or rail.
  unsupported,           ///< This build, machine or provider can't do it.
  unavailable,           ///< It exists but can't be had now: no device, no rail, a closed port.
  permission_denied,     ///< The grant lacks the right, or the system or a peer refused.
  out_of_memory,         ///< Memory, huge pages or locked memory (memlock) ran out.
  queue_full,            ///< Too much is queued; collect completions and try again.
  timed_out,             ///< The deadline passed first.
  cancelled,             ///< The caller cancelled it.
  stale,              ///< The grant has ended, or belongs to an earlier incarnation of its engine.
  peer_down,          ///< The peer is gone or was never up.
  protocol_mismatch,  ///< The other side speaks another version, or another protocol.
  fabric_failed,      ///< libfabric reported an error; `fabric_code()` holds it.
  remote_failed,      ///< The other side reported why it failed.
  quarantined,        ///< Not proven safe to reuse: the memory stays registered, don't use it.
  closed,             ///< The engine or handle was closed or moved from.
  forked,             ///< Called in a child of the process that opened the engine.
  internal,           ///< A broken invariant of Weft itself: please report it.
  corrupt,            ///< The bytes at the two ends differ, or a block of a file and its sum.
  policy_refused,     ///< A policy does not allow the path of the transfer.
};
/// Codes are added behind it, and none is taken out.
inline constexpr Code last_code = Code::policy_refused;

/// The name of a code as written above, e.g. "timed_out".
WEFT_API std::string_view to_string(Code code) noexcept;

/// A failure: a code for the program, a sentence for a person, and the context.
class WEFT_API Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const noexcept { return code_; }
  /// One sentence without the context below.
  const std::string& message() const noexcept { return message_; }
  /// Name of the peer concerned; empty where there is none.
  const std::string& peer() const noexcept { return peer_; }
  /// Name of the rail concerned; empty where there is none.
  const std::string& rail() const noexcept { return rail_; }
  /// The operation that failed, e.g. "write" or "fi_mr_reg"; empty where there is none.
  const std::string& operation() const noexcept { return operation_; }
  /// libfabric's positive error number (rdma/fi_errno.h); 0 where libfabric is not the cause.
  int fabric_code() const noexcept { return fabric_code_; }

  Error& with_peer(std::string peer) & { return peer_ = std::move(peer), *this; }
  Error& with_rail(std::string rail) & { return rail_ = std::move(rail), *this; }
  Error& with_operation(std::string operation) & {
    return operation_ = std::move(operation), *this;
  }
  Error& with_fabric_code(int code) & { return fabric_code_ = code, *this; }
  Error&& with_peer(std::string peer) && { return std::move(with_peer(std::move(peer))); }
  Error&& with_rail(std::string rail) && { return std::move(with_rail(std::move(rail))); }
  Error&& with_operation(std::string operation) && {
    return std::move(with_operation(std::move(operation)));
  }
  Error&& with_fabric_code(int code) && { return std::move(with_fabric_code(code)); }

  /// Code, sentence and context on one line, for logs and terminals.
  std::string to_string() const;

 private:
  Code code_;
  int fabric_code_ = 0;
  std::string message_, peer_, rail_, operation_;
};

/// A value, or the error.
template <typename T>
using Result = tl::expected<T, Error>;

/// `return fail(Code::invalid_argument, "...");` from any function that returns a Result.
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected<Error>(Error(code, std::move(message)));
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace weft
