/// @file
/// What peers tell each other besides data: counted signals and tagged messages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/memory.hpp>

namespace weft {

namespace core {
class ExpectState;
class ReceiveState;
}  // namespace core

/// How an expectation or a receive reports its end, besides wait().
struct NotifyOptions {
  std::uint64_t cookie = 0;
  bool event = false;  ///< Put an Event into the engine's queue.
  /// Called once, on a progress thread: short, and without waiting. Null error: it arrived.
  /// Then it is let go, with all that it holds.
  std::function<void(std::uint64_t cookie, const Error* error)> on_end = {};
  /// When it ends as `timed_out` for good, if it has not ended before; up to a heartbeat later.
  /// Signals that an expectation had collected by then are dropped, as when it is given up.
  /// Empty: never by itself, but with `cuda_stream` after Config::default_timeout.
  std::optional<Deadline> deadline = {};
  /// A CUDA stream (CUstream or cudaStream_t; null: the legacy default one of the current context).
  /// What is put on it after this call begins once this has ended, and nobody has to wait for that.
  /// It begins as well if this ended with an error, or was given up: look at how it ended before
  /// what the stream computes is used. Not for a stream that is being captured: a graph would wait
  /// once only. Where the driver lacks cuStreamWaitValue64 a thread of its own waits.
  ///
  /// A stream that waits keeps one of the queues through which a GPU gets the work of a process (8,
  /// or CUDA_DEVICE_MAX_CONNECTIONS): if streams that wait kept all of them, neither kernels nor
  /// the copies that they wait for would go on. So at most one fewer may wait at once; `queue_full`
  /// for one more. One stream may wait for many things, one after the other.
  std::optional<void*> cuda_stream = {};
};

/// Signals that were expected and have arrived.
struct Signals {
  std::uint64_t count = 0;
  /// The bytes of those that carried any, in the order in which they arrived.
  std::vector<Blob> payloads;
};

/// Waits for a number of signals with one id from one peer. Signals that came before the
/// expectation count. Each signal is given to one expectation, the oldest first.
class WEFT_API Expectation {
 public:
  Expectation(Expectation&&) noexcept;
  Expectation& operator=(Expectation&&) noexcept;
  /// Gives up the expectation; signals that it had collected are dropped.
  ~Expectation();

  bool ready() const noexcept;
  /// Ok when all have arrived (the first call takes the payloads). `remote_failed`, `peer_down`
  /// when they can't arrive any more; `timed_out` if the deadline passes first, and then the
  /// expectation stands and may be waited for again.
  Result<Signals> wait(Deadline deadline);

 private:
  friend class Engine;
  explicit Expectation(std::shared_ptr<core::ExpectState> state);
  std::shared_ptr<core::ExpectState> state_;
};

struct Message {
  std::string peer;  ///< Name of the sender.
  std::uint64_t tag = 0;
  Blob bytes;
};

/// A message asked for. Destroying it gives up the request.
class WEFT_API Receive {
 public:
  Receive(Receive&&) noexcept;
  Receive& operator=(Receive&&) noexcept;
  ~Receive();

  bool ready() const noexcept;
  /// The message (the first call takes it), or the error; `timed_out` leaves the request standing.
  Result<Message> wait(Deadline deadline);

 private:
  friend class Engine;
  explicit Receive(std::shared_ptr<core::ReceiveState> state);
  std::shared_ptr<core::ReceiveState> state_;
};

}  // namespace weft
