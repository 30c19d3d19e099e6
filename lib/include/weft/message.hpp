/// @file
/// Counted signals and tagged messages between peers.
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
#include <weft/place.hpp>

namespace weft {

namespace core {
class ExpectState;
class ReceiveState;
}  // namespace core

/// What happens to signals that arrive after their expectation timed out, failed or was given up.
/// Applies to ids that no other expectation waits for.
enum class Late : std::uint8_t {
  /// The next expectation of the id gets them, so that a wait can be repeated. They don't hold the
  /// peer back: beyond Config::unclaimed_bytes the oldest are dropped, and the next expectation of
  /// their id fails with `queue_full`.
  keep,
  /// Kept like signals that nobody expected yet: beyond Config::unclaimed_bytes the peer is held
  /// back. For an id that is expected again and again.
  hold,
  /// They are dropped, until the id is expected again. For an id that is not used twice.
  drop
};

/// How an expectation or a receive reports its end, besides wait().
struct NotifyOptions {
  std::uint64_t cookie = 0;
  bool event = false;  ///< Put an Event into the engine's queue.
  /// Called once, on a progress thread. It must be short and must not wait. A null error means
  /// success. It is destroyed afterwards, with all that it holds.
  std::function<void(std::uint64_t cookie, const Error* error)> on_end = {};
  /// At this time (up to 0.1 s late) it ends as `timed_out` and can't be waited for again. Signals
  /// that an expectation has collected by then are dropped, as when it is given up. Empty: it does
  /// not end by itself; with `gpu_stream`, after Config::default_timeout.
  std::optional<Deadline> deadline = {};
  /// A CUDA stream (CUstream or cudaStream_t; null: the legacy default stream of the current
  /// context). Work that is put on it after this call begins when this has ended; no thread waits
  /// for that. The work also begins if this ended with an error or was given up: look at the
  /// outcome before you use the result. Not for a stream that is being captured: a graph would wait
  /// once only. If the driver lacks cuStreamWaitValue64, a thread of the driver waits.
  ///
  /// A waiting stream occupies one of the queues through which a GPU gets the work of a process (8,
  /// or CUDA_DEVICE_MAX_CONNECTIONS). If waiting streams occupied all of them, neither kernels nor
  /// the copies that they wait for would run. So one queue stays free: one stream too many fails
  /// with `queue_full`. A stream may wait for many things, one after the other.
  std::optional<void*> gpu_stream = {};
  Late late = Late::keep;  ///< Of expectations.
};

/// Expected signals that have arrived.
struct Signals {
  std::uint64_t count = 0;
  /// The payloads of signals that carried one, in the order of arrival.
  std::vector<Blob> payloads;
};

/// Waits for a number of signals with one id from one peer. Signals that came before the
/// expectation was made count. Each signal goes to one expectation, the oldest first.
class WEFT_API Expectation {
 public:
  Expectation(Expectation&&) noexcept;
  Expectation& operator=(Expectation&&) noexcept;
  /// Gives up the expectation; the signals that it has collected are dropped.
  ~Expectation();

  bool ready() const noexcept;
  /// Succeeds when all have arrived; the first call takes the payloads. Fails with `remote_failed`
  /// or `peer_down` if they can't arrive any more. Fails with `timed_out` if the deadline passes
  /// first; then the expectation stands and may be waited for again. If the peer is held back
  /// meanwhile (Config::unclaimed_bytes), the error says so. `queue_full`: see Late::keep.
  Result<Signals> wait(Deadline deadline);

 private:
  friend class Peer;
  explicit Expectation(std::shared_ptr<core::ExpectState> state);
  std::shared_ptr<core::ExpectState> state_;
};

struct Message {
  std::string peer;  ///< Name of the sender.
  std::uint64_t tag = 0;
  Blob bytes;
};

/// A request for a message. Destroying it gives up the request.
class WEFT_API Receive {
 public:
  Receive(Receive&&) noexcept;
  Receive& operator=(Receive&&) noexcept;
  ~Receive();

  bool ready() const noexcept;
  /// The message (the first call takes it), or the error; `timed_out` leaves the request standing,
  /// and says if the peer is held back.
  Result<Message> wait(Deadline deadline);

 private:
  friend class Peer;
  explicit Receive(std::shared_ptr<core::ReceiveState> state);
  std::shared_ptr<core::ReceiveState> state_;
};

}  // namespace weft
