// Signals and tagged messages over one rail: receives are posted ahead of every message (credits),
// since a message that finds none would stop the data behind it (libfabric 1.17 "net", 2.x "tcp").
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
#include <weft/error.hpp>

#include "endpoint.hpp"
#include "message/buffer_pool.hpp"
#include "message/outbox.hpp"
#include "message/sequencer.hpp"
#include "peer/peer_state.hpp"

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

  /// What a message takes whose payload has so many bytes.
  static std::size_t message_bytes(std::size_t payload);

  Channel(providers::Endpoint& endpoint, std::string rail_name, Limits limits, OnBroken on_broken);

  /// Posts receives for a peer. `own_token` is what the peer will put at the head of its messages.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token);
  /// Ends what waited to be sent, with the peer's error.
  void peer_died(PeerState& peer);
  /// Whether something to the peer is under way.
  bool sends_to(const PeerState& peer) const;
  /// Something was put into the peer's outbox, or its mailbox has room again.
  void attend(PeerState& peer);
  /// Sends what credits allow to the peers that need attention; returns how many messages.
  std::size_t pump();
  bool has_work() const noexcept { return live_ > 0 || !attended_.empty(); }
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
    providers::FabricAddress address = 0;
    std::uint64_t own_token = 0;
    std::uint32_t next_sequence = 0;
    std::size_t credits = 0;     // messages that we may still send
    std::uint64_t returned = 0;  // credits that the peer has returned in all
    std::uint64_t taken = 0;     // messages that were handed on, ...
    std::uint64_t told = 0;      // ... and those of them whose credits were returned
    Sequencer<Arrived> arrivals;
    std::optional<Outgoing> refused;  // taken from the outbox, and the provider had no room
    bool attended = false;
  };
  struct Sending {
    std::shared_ptr<PeerState> peer;
    std::shared_ptr<TransferState> transfer;
    bool counted = true;  // it came out of the outbox
    bool lost = false;    // its peer is gone
  };

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  void sent(Buffer& buffer, const providers::Completion& completion);
  void arrived(Buffer& buffer, const providers::Completion& completion);
  void deliver(const Buffer& buffer, std::size_t length);
  void take_credits(Link& link, std::uint64_t returned);
  void hand_on(Link& link, Arrived&& message);
  void post_receive(Buffer& buffer);
  std::size_t serve(Link& link);
  bool owes_credits(const Link& link) const;
  bool return_credits(Link& link);
  bool send(Link& link, const Outgoing& message);
  void attend(Link& link);
  Error error_of(const PeerState& peer, int fabric_code, std::string_view text) const;

  providers::Endpoint& endpoint_;
  const std::string rail_name_;
  const Limits limits_;
  const OnBroken on_broken_;
  BufferPool receives_, sends_;
  std::size_t spare_receives_ = 0;                 // posted for peers that are gone
  std::vector<Buffer*> unposted_;                  // receives that the provider had no room for
  std::unordered_map<std::uint64_t, Link> links_;  // by own token
  std::vector<std::uint64_t> attended_;
  std::unordered_map<std::uint64_t, Sending> in_flight_;  // by the send buffer's number
  std::size_t live_ = 0;           // of those in flight, to peers that are up
  std::uint64_t next_number_ = 1;  // 0 marks receives
};

}  // namespace weft::core
