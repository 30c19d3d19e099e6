// Two-sided transport: chunks travel as messages through bounce buffers, and the owner of the
// memory copies them in or out. For memory that no NIC can reach; slower than RMA by two copies.
//
// A request carries as many chunks of a transfer as fit its buffer: behind the head comes a list of
// pieces, and behind that their bytes. All pieces are checked before a byte of any moves.
//
// The CPU's memory is copied inline. A device's is copied beside this thread (Staging): while one
// request is on the wire the next one is on its way to the bounce buffer, and a credit comes back
// only when the bytes are in their place, so that no peer overruns a slower device.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "transport/bounce_lanes.hpp"
#include "transport/bounce_responder.hpp"
#include "transport/transport.hpp"

namespace weft::core {

/// A request to a peer, until its answer has come.
struct BounceRequest {
  enum class Phase : std::uint8_t {
    waiting,      // for a credit, a receive or a buffer
    copying_out,  // a device copies the bytes into the buffer
    ready,        // the buffer is filled, and the provider has no room yet
    held,         // likewise, and its owner posts it again (Op::request)
    sent,         // the peer has to answer
    copying_in,   // a device copies what the peer has answered
  };
  std::uint64_t number = 0;
  Op* op = nullptr;
  BounceLink* link = nullptr;  // null: the peer is gone, and a device still copies
  const RemoteRail* target = nullptr;
  bool in_lane = false;  // has a credit there, and a receive for the answer
  Phase phase = Phase::waiting;
  // Of the request until it is sent, then of the answer while copying_in.
  Buffer* buffer = nullptr;
  std::size_t bytes = 0;  // in it, behind the head
};

class Bounce final : public Transport, private providers::CompletionHandler {
 public:
  struct Limits {
    std::size_t buffer_bytes = 0;  // payload of one message
    std::size_t buffers = 0;       // requests under way to one peer
    std::size_t most = 0;          // receives that may be posted, and buffers to send from
  };
  using FindGrant = BounceResponder::FindGrant;
  using Tell = BounceLanes::Tell;

  /// The payload that fits a message of so many bytes, behind a list of pieces.
  static std::uint64_t payload_bytes(std::uint64_t message) { return bounce_payload(message); }
  /// The size of a message with so much payload.
  static std::uint64_t message_bytes(std::uint64_t payload) { return bounce_message(payload); }

  Bounce(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits, FindGrant find_grant,
         FlushArrived flush, Tell tell);

  /// `own_token` is what the peer will put at the head of its messages.
  void add_peer(const std::shared_ptr<PeerState>& peer, Route& route, std::uint64_t own_token);
  /// The peer's word about the lanes between it and this rail.
  void hear(Route& route, const BounceCredits& credits);
  /// Closes the lanes that nothing has used since the last call, and frees what nothing needed.
  void tidy();
  // From any thread.
  /// Bytes of a transfer that a buffer holds.
  std::uint64_t buffer_bytes() const noexcept { return limits_.buffer_bytes; }
  std::size_t promised() const noexcept { return receives_.promised(); }
  std::size_t posted() const noexcept { return receives_.posted(); }
  /// Of the buffers.
  std::uint64_t bytes() const noexcept { return receives_.bytes() + core_.sends.bytes(); }

  /// Before it carries the first bytes of a device's. May block.
  Result<void> serve(const Device& device);

  std::uint64_t chunk_limit(const Route& route) const override;
  std::size_t most_chunks(const Route& route) const override;
  std::size_t room(const Route& route) const override;
  providers::Post post(Op& op) override;
  bool went_out(const Op& op) const override;
  void give_up(Op& op) override;
  std::size_t progress() override;
  /// Bounce buffers stand between the NIC and the application's memory: chunks end now, or with the
  /// device's copy that is under way for them.
  void peer_died(Route& route) override;
  /// One of the two ends of the route was closed: what was asked, or its answer, may be lost.
  void cut(const Route& route);
  /// Requests that nothing is sent of before the peer has receives for them.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  bool has_work() const noexcept {
    return requests_.in_use() > 0 || responder_.has_work() || copying();
  }
  /// A device copies to or from the buffers.
  bool copying() const noexcept { return core_.staging.under_way() > 0; }
  /// The endpoint is closed: waits until no device copies any more. False if one has not ended by
  /// the deadline.
  bool settle(Deadline deadline);
  /// It never will: the buffers stay for ever. Afterwards only the destructor.
  void keep_buffers();

 private:
  friend class Receives<Bounce>;
  using Phase = BounceRequest::Phase;
  using Way = BufferCopies::Way;

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  BounceRequest& begin(Op& op);
  enum class Start : std::uint8_t { begun, waits, unwanted, no_memory };
  Start start(BounceRequest& request);
  bool enter_lane(BounceRequest& request);
  std::size_t start_waiting();
  void refused(const BounceLink& link, std::uint32_t theirs);
  void write_out(BounceRequest& request, Buffer& buffer);
  void list_copies(Way way, const Op& op, std::byte* buffer);
  bool fill(BounceRequest& request);
  providers::Post send(const BounceRequest& request);
  bool advance(BounceRequest& request);
  std::size_t send_ready();
  void copied(BounceRequest& request, const std::optional<Error>& error);
  Received arrived(Buffer& buffer, std::size_t length);
  Received answered(BounceLink& link, Buffer& buffer, const BounceMessage& message);
  Received read_in(BounceRequest& request, Buffer& buffer, const BounceMessage& message);
  void end_unsent(BounceRequest& request, int fabric_code);
  void end(BounceRequest& request, const providers::Completion& completion);
  void release(BounceRequest& request);
  void leave(BounceRequest& request);
  void leave_lane(BounceRequest& request);
  void drop_buffer(BounceRequest& request);

  const Limits limits_;
  const std::size_t most_answers_;
  std::size_t answers_ = 0;  // receives that are promised for them
  BounceCore core_;
  Receives<Bounce> receives_;
  BounceLanes lanes_;
  BounceResponder responder_;
  std::unordered_map<std::uint64_t, BounceLink> links_;  // by own token
  SlotTable<BounceRequest> requests_;
  std::deque<BounceRequest*> waiting_, ready_;  // in their order
};

}  // namespace weft::core
