// Two-sided transport: chunks travel as messages through bounce buffers, and the owner of the
// memory copies them in or out. For memory that no NIC can reach; slower than RMA by two copies.
//
// A request carries as many chunks of a transfer as fit its buffer: behind the head comes a list of
// pieces, and behind that their bytes. All pieces are checked before a byte of any moves. Peers
// that do not know lists are sent one chunk at a time.
//
// The CPU's memory is copied at once. A device's is copied beside this thread (Staging): while one
// request is on the wire the next one is on its way to the bounce buffer, and a credit comes back
// when the bytes are in their place, so that nobody is overrun by a peer that is faster than his
// device.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lease/grant_state.hpp"
#include "memory/arrival_flush.hpp"
#include "message/buffer_pool.hpp"
#include "transport/staging.hpp"
#include "transport/transport.hpp"

namespace weft::wire {
struct BounceHead;
}

namespace weft::core {

class PeerState;

/// Credits: a route may have `buffers` requests under way. For each there are a receive for the
/// request on the one side and one for the answer on the other, so neither side can be overrun,
/// however slow it is.
class Bounce final : public Transport, private providers::CompletionHandler {
 public:
  struct Limits {
    std::size_t buffer_bytes = 0;  // payload of one message
    std::size_t buffers = 0;       // requests under way on one route
    std::size_t pieces = 1;        // of a request
    // What a peer may send who knows no lists, and takes their room for his only piece.
    std::uint64_t longest_message = 0;
  };
  /// Finds a grant of this engine by its lease; null if there is none (any more).
  using FindGrant = std::function<std::shared_ptr<GrantState>(std::uint64_t lease)>;

  /// A message with a payload of so many bytes, and no list.
  static std::uint64_t message_bytes(std::uint64_t payload);
  /// The payload that fits a message of so many bytes, behind a list of pieces.
  static std::uint64_t payload_bytes(std::uint64_t message);
  /// The pieces that a request of so much payload may have.
  static std::size_t pieces_of(std::uint64_t payload);

  Bounce(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits, FindGrant find_grant,
         FlushArrived flush);

  /// Posts receives for a peer. `own_token` is what the peer will put at the head of its messages.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                        std::uint64_t own_token);

  /// Before it carries the first bytes of a device's. May block.
  Result<void> serve(const Device& device);

  std::uint64_t chunk_limit(const Route& route) const override;
  std::size_t most_chunks(const Route& route) const override;
  std::size_t room(const Route& route) const override;
  providers::Post post(Op& op) override;
  void give_up(Op& op) override;
  std::size_t progress() override;
  /// Bounce buffers stand between the NIC and the application's memory: chunks end at once, or with
  /// the copy of theirs that is under way.
  void peer_died(Route& route) override;
  /// One of the two ends of the route was closed: what was asked, or its answer, may be lost.
  void cut(const Route& route);
  bool has_work() const noexcept {
    return !pending_.empty() || !answers_.empty() || !missed_.empty() || copying() ||
           !unsent_.empty();
  }
  /// A device copies to or from the buffers.
  bool copying() const noexcept { return staging_.under_way() > 0; }
  /// The endpoint is closed: waits until no device copies any more. False if one has not ended by
  /// the deadline.
  bool settle(Deadline deadline);
  /// It never will: the buffers stay for ever. Afterwards only the destructor.
  void keep_buffers();

 private:
  struct Link {
    std::shared_ptr<PeerState> peer;
    Route* route = nullptr;
    std::size_t receives = 0;  // posted for it
  };
  struct Answer {
    std::uint64_t own_token = 0;  // of the peer who asked
    std::uint32_t rail = 0;       // of the peer's, which asked
    std::uint64_t operation = 0;
    Code status{};  // Code{}: carried out
    std::uint64_t lease = 0;
    std::vector<Range> reads{};  // what to read when there is a buffer
    Nanoseconds pause{};         // before it is sent again, if it did not arrive
  };

  /// A message whose payload lies ready in its buffer, or will do so.
  struct Ready {
    Buffer* buffer = nullptr;
    std::uint64_t number = 0;  // of a request; 0 for answers
    std::optional<Answer> answer{};
    std::size_t bytes = 0;  // behind the head
  };
  /// What follows a copy of a device's.
  struct Staged {
    enum class Step : std::uint8_t { send_request, write_in, send_answer, read_in };
    Step step = Step::send_request;
    Ready ready{};
    std::shared_ptr<GrantState> grant{};  // of what a peer asked for: in its copying()
  };
  /// Whether a receive's buffer is free again, or has to stay until a copy has ended.
  enum class Received : bool { free, kept };
  enum class Copied : bool { now, later };
  /// Out of the segment, into a buffer; or the other way.
  enum class Way : bool { out, in };

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  std::vector<std::uint64_t> pending_on(const Route& route) const;
  static std::size_t list_bytes(std::size_t pieces);
  static void write_list(std::byte* to, const Op& op);
  std::span<const Copy> copies_of(const Op& op, std::byte* buffer, Way way);
  std::span<const Copy> copies_of(std::span<const Range> pieces, const GrantState& grant,
                                  std::byte* buffer, Way way);
  providers::Post post_filled(Op& op, const Ready& ready);
  void stage(Op& op, const Ready& ready, std::span<const Copy> copies);
  providers::Post send(const Ready& ready, const Op& op);
  bool send_ready(const Ready& ready);
  void send_when_room(Ready ready);
  std::size_t send_waiting();
  bool given_up(const Ready& ready);
  void drop(const Ready& ready, int fabric_code);
  const Route* route_of(const Ready& ready) const;

  void copied(Staged&& staged, const std::optional<Error>& error);
  void lost(const Staged& staged, const Error& error);
  void finish_copied(std::uint64_t operation, const std::optional<Error>& error);
  void request_copied(const Ready& ready, const std::optional<Error>& error);
  void answer_copied(Ready ready, const std::optional<Error>& error);

  Received arrived(Buffer& buffer, std::size_t length);
  bool read_list(const wire::BounceHead& head, std::span<const std::byte> behind);
  std::shared_ptr<GrantState> allowed(Answer& answer, Rights rights,
                                      std::span<const Range> pieces) const;
  Received write_in(Buffer& buffer, std::byte* from, Answer& answer);
  static Code could_not_copy(const Error& error);
  Received answered(const Link& link, Buffer& buffer, std::uint64_t operation, Code status,
                    std::size_t length);
  Received read_in(const Device& device, std::span<const Copy> copies, const Ready& ready);
  void finish(std::uint64_t operation, const providers::Completion& completion);
  void finish(std::uint64_t operation, const Error& error);

  bool answer(const Answer& asked);
  Copied read_out(Ready& ready);
  bool send_answer(const Ready& ready);
  void answer_missed(Answer answer);
  void answer_again();
  void post_receive(Buffer& buffer);
  void post_failed_receives();

  providers::Endpoint& endpoint_;
  const std::uint32_t rail_;
  const Limits limits_;
  const FindGrant find_grant_;
  const FlushArrived flush_;
  BufferPool receives_, sends_;
  Staging<Staged> staging_;
  std::size_t spare_receives_ = 0;                  // posted for peers that are gone
  std::vector<Buffer*> unposted_;                   // receives that the provider had no room for
  std::vector<Buffer*> failed_receives_;            // not posted again yet
  std::unordered_map<std::uint64_t, Link> links_;   // by own token
  std::unordered_map<std::uint64_t, Op*> pending_;  // by the number of the request
  // Of these, those whose memory a device copies, and how some of them are to end afterwards.
  std::unordered_set<std::uint64_t> copied_;
  std::unordered_map<std::uint64_t, providers::Completion> doomed_;
  // For want of room at the provider; bounded by the credits. Each peer's for itself: one that
  // takes nothing holds up no other.
  std::unordered_map<const Route*, std::deque<Ready>> unsent_;
  std::deque<Answer> answers_;  // waiting for a buffer; bounded by the peers' credits
  // Sent, by the numbers of their buffers, and not known to have arrived.
  std::unordered_map<std::uint64_t, Answer> answering_;
  // They did not arrive, and are sent again at their times.
  std::vector<std::pair<Clock::time_point, Answer>> missed_;
  std::uint64_t next_number_ = 1;  // 0 marks receives
  // What one message is about, while it is looked at.
  std::vector<Range> asked_;
  std::vector<Copy> copies_;
};

}  // namespace weft::core
