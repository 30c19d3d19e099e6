// Signals and tagged messages over one rail. Receives are posted ahead of every message (credits):
// one that finds none would stop the data behind it (libfabric 1.17 "net", 2.x "tcp"). Where the
// rail does not deliver a message, the control connection does; the receiver drops repeats. A
// message that is longer than a packet of the rail's is cut into fragments, which are messages of
// their own until the receiver hands them on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/error.hpp>

#include "memory/arrival_flush.hpp"
#include "message/assembly.hpp"
#include "message/buffer_pool.hpp"
#include "message/control_path.hpp"
#include "message/receives.hpp"
#include "message/send_window.hpp"
#include "message/sequencer.hpp"
#include "peer/outbox.hpp"
#include "peer/peer_state.hpp"
#include "providers/endpoint.hpp"
#include "wire/notice.hpp"

namespace weft::core {

/// Keeps one reliable stream of numbered messages to each peer, and one from it. Used by the rail's
/// owning thread only.
class Messenger final : private providers::CompletionHandler {
 public:
  struct Limits {
    std::size_t max_message = 0;  // payload bytes that this engine accepts
    std::size_t credits = 0;      // packets that one peer may have under way to us, at most
    // Bytes that the rail takes at once.
    std::size_t packet = std::numeric_limits<std::size_t>::max();
    // Of these, what every peer has; it gets more while it uses them, as long as there are any.
    std::size_t first_credits = std::numeric_limits<std::size_t>::max();
    std::size_t receives = std::numeric_limits<std::size_t>::max();  // that may be posted
  };
  /// Called when messages to a peer can't be delivered any more.
  using OnBroken = std::function<void(PeerState&, const Error&)>;
  /// Sends a notice over the control connection.
  using Tell = std::function<void(const PeerState&, Notice)>;

  /// What every peer has at first of `credits`, and keeps. A guess: a transfer's signal and a few
  /// messages. Once it has used half of them it gets the others.
  static std::size_t first_credits(std::size_t credits) {
    return std::min<std::size_t>(credits, 4);
  }
  /// A rail must take so many bytes at once, or it can't be used. A guess: heads are a sixteenth.
  static constexpr std::size_t least_packet = 512;
  /// The size of a packet whose payload has so many bytes.
  static std::size_t message_bytes(std::size_t payload);

  Messenger(providers::Endpoint& endpoint, std::string rail_name, Limits limits, OnBroken on_broken,
            Tell tell, FlushArrived flush);

  /// Bytes of the longest packet that receives are posted for.
  std::size_t packet_bytes() const noexcept { return receives_.buffer_bytes(); }
  /// Promises a peer its first credits. `own_token` is what the peer will put at the head of its
  /// messages.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token);
  /// Ends what waited to be sent, with the peer's error.
  void peer_died(PeerState& peer);
  /// Whether the rail has messages to the peer under way.
  bool sends_to(const PeerState& peer) const;
  /// Something was put into the peer's outbox, or its mailbox has room again.
  void attend(const PeerState& peer);
  /// A message from the peer came over the control connection.
  void arrived_by_control(const PeerState& peer, Bytes message);
  /// The peer has the oldest of those that went to it over the control connection.
  void taken_by_control(const PeerState& peer);
  /// The peer says goodbye, and has taken so many packets in all.
  void taken_at_goodbye(const PeerState& peer, std::uint64_t count);
  /// The peer has given back so many of its credits.
  void credits_given_back(const PeerState& peer, std::uint64_t count);
  /// The peer's rail was closed and opened again. Messages that it has not acknowledged may be lost
  /// there, so they go once more, over the control connection.
  void peer_moved(const PeerState& peer);
  /// Sends what credits allow to the peers that need attention; returns how many packets.
  std::size_t pump();
  /// Gives credits back to peers that nothing was sent to since the last call, and frees what
  /// nothing needed since then.
  void tidy();
  // From any thread.
  std::size_t promised() const noexcept { return receives_.promised(); }
  std::size_t posted() const noexcept { return receives_.posted(); }
  /// Of the buffers.
  std::uint64_t bytes() const noexcept { return receives_.bytes() + sends_.bytes(); }
  bool has_work() const noexcept { return live_ > 0 || !attended_.empty() || !failed_.empty(); }
  /// Nothing is under way, not even to peers that are gone.
  bool idle() const noexcept { return in_flight_.empty() && attended_.empty(); }

 private:
  friend class Receives<Messenger>;

  struct Arrived {
    MessageKind kind = MessageKind::tagged;
    std::uint64_t tag = 0;
    Blob bytes = {};
    Direction direction = Direction::write;  // of the transfer whose signal it is
    std::uint64_t carried = 0;               // bytes of that transfer
  };
  /// What is sent at once: a message, a fragment of one, or a return of credits.
  struct Packet {
    MessageKind kind = MessageKind::tagged;
    std::uint64_t tag = 0;
    Bytes bytes = {};
    std::shared_ptr<TransferState> transfer = {};
    std::uint32_t before = 0;   // as Unacknowledged has it
    std::uint64_t credits = 0;  // that it returns, in all
  };
  /// Taken from the outbox, and not sent to its end yet.
  struct Held {
    Outgoing message;
    std::size_t sent = 0;  // bytes of it
    std::uint32_t fragments = 0;
  };
  /// Both ways between this engine and one peer.
  struct Stream {
    std::shared_ptr<PeerState> peer;
    Route& route;
    std::uint64_t own_token = 0;
    bool leaves_failed_rail = false;  // for the control connection
    bool may_leave_rail = false;      // what it was not posted to, or was closed, for the same
    // To the peer. On the wire numbers count from `first_sequence`.
    std::uint32_t first_sequence = 0;
    std::size_t most_bytes;  // of payload in one packet
    SendWindow window;
    ControlPath control = {};
    std::optional<Held> held = {};
    std::optional<Clock::time_point> refused_since = {};
    bool rests = false;  // nothing was sent since the last tidy()
    // From the peer.
    Sequencer<Arrived> arrivals;
    Assembly assembly;
    std::uint64_t taken = 0;       // packets that were handed on, ...
    std::uint64_t returned = 0;    // ... and whose credits it has again
    std::size_t promised;          // packets that it may have under way, ...
    std::uint64_t given_back = 0;  // ... without those that it has given back in all
    bool attended = false;
  };
  /// A packet that the rail has.
  struct InFlight {
    const PeerState* peer;  // to compare only: it may be gone
    std::uint64_t own_token;
    MessageNumber number;
    Buffer& buffer;
    Clock::time_point since;
    bool abandoned = false;  // its peer is gone, or it went by the control connection
  };

  /// A message that can't be delivered. Told by the next pump(): a peer that closes breaks its
  /// rails after it has said what it took, and that is in the worker's inbox by then.
  struct Failed {
    std::uint64_t own_token;
    MessageNumber number;
    Error error;
    bool seen = false;  // by a pump() before
  };

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  void advance(Stream& stream, Unacknowledged& message, const InFlight& sent);
  void failed(Stream& stream, const InFlight& sent, const providers::Completion& completion);
  void tell_failed();
  Received arrived(Buffer& buffer, std::size_t length);
  Stream* stream_of(std::uint64_t own_token);
  Stream* stream_to(const PeerState& peer);
  void deliver(Bytes message, const PeerState* sender);
  void delivered(Stream& stream, std::uint64_t number);
  void take_acknowledgement(Stream& stream, std::uint64_t count, std::uint64_t credits);
  void hand_on(Stream& stream, Arrived&& packet);
  void hand_on_whole(Stream& stream, Arrived&& message);
  static void count_received(PeerTraffic& traffic, const Arrived& message);
  std::size_t serve(Stream& stream);
  bool owes_credits(const Stream& stream) const;
  bool acknowledge(Stream& stream);
  static Packet acknowledgement(const Stream& stream);
  std::size_t promise_the_rest(Stream& stream);
  std::size_t most_bytes(const Route& route) const;
  bool send_next(Stream& stream);
  static void write_out(const Stream& stream, const Packet& packet, std::byte* at);
  std::size_t most_sends() const;
  static MessageNumber enter(Stream& stream, Packet& packet, Unacknowledged::Phase phase,
                             Buffer* buffer);
  bool send(Stream& stream, Packet packet);
  bool post(Stream& stream, Buffer& buffer, Packet& packet);
  void refused(Stream& stream);
  Buffer* take_buffer();
  static void end(PeerState& peer, Unacknowledged& message, const std::optional<Error>& error);
  bool avoids_rail(const Stream& stream) const;
  void send_by_control(Stream& stream, Packet& packet);
  void resend_by_control(Stream& stream, MessageNumber number, const Buffer& buffer);
  void push_control(Stream& stream);
  void rescue_overdue();
  void attend(Stream& stream);
  Error error_of(const PeerState& peer, int fabric_code, std::string_view text) const;

  providers::Endpoint& endpoint_;
  const std::string rail_name_;
  const Limits limits_;
  const OnBroken on_broken_;
  const Tell tell_;
  const FlushArrived flush_;
  Receives<Messenger> receives_;
  BufferPool sends_;
  std::unordered_map<std::uint64_t, Stream> streams_;  // by own token
  std::vector<std::uint64_t> attended_, serving_;
  std::map<std::uint64_t, InFlight> in_flight_;  // by the send buffer's number: oldest first
  std::size_t live_ = 0;                         // of these, not abandoned
  std::vector<Failed> failed_;
  std::uint64_t next_post_ = 0;
};

}  // namespace weft::core
