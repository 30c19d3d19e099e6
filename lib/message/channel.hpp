// Signals and tagged messages over one rail: receives are posted ahead of every message (credits),
// since a message that finds none would stop the data behind it (libfabric 1.17 "net", 2.x "tcp").
// What a NIC can't get to the peer goes by the control connection; the receiver drops repeats.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/error.hpp>

#include "memory/arrival_flush.hpp"
#include "message/buffer_pool.hpp"
#include "message/detour.hpp"
#include "message/sequencer.hpp"
#include "peer/outbox.hpp"
#include "peer/peer_state.hpp"
#include "providers/endpoint.hpp"
#include "wire/notice.hpp"

namespace weft::core {

/// Used by the rail's owning thread only.
class Channel final : private providers::CompletionHandler {
 public:
  struct Limits {
    std::size_t max_message = 0;  // payload bytes that this engine accepts
    std::size_t credits = 0;      // messages that one peer may have under way to us
  };
  /// Called when a peer can't be talked to any more.
  using OnBroken = std::function<void(PeerState&, const Error&)>;
  /// Sends a notice over the control connection.
  using Tell = std::function<void(const PeerState&, Notice)>;

  /// What a message takes whose payload has so many bytes.
  static std::size_t message_bytes(std::size_t payload);

  Channel(providers::Endpoint& endpoint, std::string rail_name, Limits limits, OnBroken on_broken,
          Tell tell, FlushArrived flush);

  /// Posts receives for a peer. `own_token` is what the peer will put at the head of its messages.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token);
  /// Ends what waited to be sent, with the peer's error.
  void peer_died(PeerState& peer);
  /// Whether something to the peer is under way.
  bool sends_to(const PeerState& peer) const;
  /// Something was put into the peer's outbox, or its mailbox has room again.
  void attend(const PeerState& peer);
  /// A message of the peer's came over the control connection.
  void take_detoured(const PeerState& peer, Bytes message);
  /// The peer has taken the oldest of those that went this way.
  void detour_taken(const PeerState& peer);
  /// The peer's rail was closed and opened again: what it has not taken yet goes around, since it
  /// may be lost there. The peer drops what it has twice.
  void peer_moved(const PeerState& peer);
  /// Sends what credits allow to the peers that need attention; returns how many messages.
  std::size_t pump();
  bool has_work() const noexcept { return live_ > 0 || !attended_.empty(); }
  /// Tagged messages, sent or handed on, in all: with those peers where of the two threads it is
  /// ours that goes elsewhere, should both be on one core.
  std::uint64_t messages_to_part_for() const noexcept { return messages_to_part_for_; }
  /// Nothing is under way, not even to peers that are gone.
  bool idle() const noexcept { return in_flight_.empty() && attended_.empty(); }

 private:
  struct Arrived {
    MessageKind kind = MessageKind::tagged;
    std::uint64_t tag = 0;
    Blob bytes = {};
  };
  struct Link {
    std::shared_ptr<PeerState> peer;
    Route& route;
    std::uint64_t own_token = 0;
    bool may_detour = false;     // when the rail fails
    bool may_go_around = false;  // at all
    std::uint32_t next_sequence = 0;
    std::size_t credits = 0;     // messages that we may still send
    std::uint64_t returned = 0;  // credits that the peer has returned in all
    std::uint64_t taken = 0;     // messages that were handed on, ...
    std::uint64_t told = 0;      // ... and those of them whose credits were returned
    Sequencer<Arrived> arrivals;
    Detour detour = {};
    // Those that the peer has not returned the credits of, oldest first. Their buffers are kept
    // until then, as long as there are others; null where that is not so.
    std::deque<Buffer*> untaken = {};
    // Those with smaller numbers went to a rail of the peer's that was closed since.
    std::uint64_t unsure_below = 0;
    bool forgotten = false;             // one of these had to give its buffer away
    std::optional<Outgoing> held = {};  // taken from the outbox, and the provider had no room
    std::optional<Clock::time_point> refused_since = {};
    bool attended = false;
  };
  struct Sending {
    std::shared_ptr<PeerState> peer;
    Buffer& buffer;
    Delivery delivery;
    Clock::time_point since;
    bool written_off = false;  // its peer is gone, or it went by the control connection
  };

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  void sent(Buffer& buffer, const providers::Completion& completion);
  void send_failed(Sending& sending, const providers::Completion& completion);
  void arrived(Buffer& buffer, const providers::Completion& completion);
  Link* link_to(const PeerState& peer);
  void count(const Link& link, MessageKind kind);
  void deliver(Bytes message, const PeerState* sender);
  void take_credits(Link& link, std::uint64_t returned);
  void hand_on(Link& link, Arrived&& message);
  void post_receive(Buffer& buffer);
  void post_all(std::vector<Buffer*>& receives);
  std::size_t serve(Link& link);
  bool owes_credits(const Link& link) const;
  bool return_credits(Link& link);
  static void write_out(const Link& link, const Outgoing& message, std::byte* at);
  void send_around(Link& link, const Outgoing& message);
  bool send(Link& link, const Outgoing& message);
  bool post(Link& link, Buffer& buffer, const Outgoing& message);
  void refused(Link& link);
  Buffer* take_buffer();
  void put_back(Buffer& buffer);
  static void let_go(Link& link, Buffer& buffer);
  void settle(PeerState& peer, Delivery delivery, const std::optional<Error>& error);
  bool avoids_rail(const Link& link) const;
  void detour(Link& link, Blob message, Delivery delivery);
  void push_detour(Link& link);
  void rescue_overdue();
  void attend(Link& link);
  Error error_of(const PeerState& peer, int fabric_code, std::string_view text) const;

  providers::Endpoint& endpoint_;
  const std::string rail_name_;
  const Limits limits_;
  const OnBroken on_broken_;
  const Tell tell_;
  const FlushArrived flush_;
  BufferPool receives_, sends_;
  std::size_t spare_receives_ = 0;                 // posted for peers that are gone
  std::vector<Buffer*> unposted_;                  // receives that the provider had no room for
  std::vector<Buffer*> failed_;                    // receives that are not posted again yet
  std::unordered_map<std::uint64_t, Link> links_;  // by own token
  std::vector<std::uint64_t> attended_;
  std::map<std::uint64_t, Sending> in_flight_;  // by the send buffer's number: oldest first
  std::size_t live_ = 0;                        // of these, not written off
  std::uint64_t next_number_ = 1;               // 0 marks receives
  std::uint64_t messages_to_part_for_ = 0;
};

}  // namespace weft::core
