// Two-sided transport: chunks travel as messages through bounce buffers, and the owner of the
// memory copies them in or out. For memory that no NIC can reach; slower than RMA by two copies.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lease/grant_state.hpp"
#include "message/buffer_pool.hpp"
#include "transport/transport.hpp"

namespace weft::core {

class PeerState;

/// Credits: a route may have `buffers` chunks under way. For each there are a receive for the
/// request on the one side and one for the answer on the other, so neither side can be overrun,
/// however slow it is.
class Relay final : public Transport, private providers::CompletionHandler {
 public:
  struct Limits {
    std::size_t buffer_bytes = 0;  // payload of one message
    std::size_t buffers = 0;       // chunks under way on one route
  };
  /// Finds a grant of this engine by its lease; null if there is none (any more).
  using FindGrant = std::function<std::shared_ptr<GrantState>(std::uint64_t lease)>;

  /// The payload that fits a message of so many bytes.
  static std::uint64_t payload_bytes(std::uint64_t message);

  Relay(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits, FindGrant find_grant);

  /// Posts receives for a peer. `own_token` is what the peer will put at the head of its messages.
  Result<void> add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                        std::uint64_t own_token);

  std::uint64_t chunk_limit(const Route& route) const override;
  std::size_t room(const Route& route) const override;
  providers::Post post(Op& op) override;
  std::size_t progress() override;
  /// Bounce buffers stand between the NIC and the application's memory: chunks end at once.
  void peer_died(Route& route) override;
  /// One of the two ends of the route was closed: what was asked, or its answer, may be lost.
  void cut(const Route& route);
  bool has_work() const noexcept {
    return !pending_.empty() || !answers_.empty() || !missed_.empty();
  }

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
    Code status{};            // Code{}: carried out
    std::uint64_t lease = 0;  // for reads: where to read from when there is a buffer
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // 0 for writes
    Nanoseconds pause{};       // before it is sent again, if it did not arrive
  };

  void completed(providers::Posted& posted, const providers::Completion& completion) override;
  void arrived(const Buffer& buffer, std::size_t length);
  Code write_in(const Buffer& buffer, std::uint64_t lease, std::uint64_t offset,
                std::size_t payload);
  void answered(const Link& link, std::uint64_t operation, Code status, const std::byte* payload,
                std::size_t length);
  void finish(std::uint64_t operation, const providers::Completion& completion);
  void finish_all(const Route& route, const providers::Completion& completion);
  bool send_answer(const Answer& answer);
  void answer_missed(Answer answer);
  void answer_again();
  void post_receive(Buffer& buffer);
  void post_failed_receives();

  providers::Endpoint& endpoint_;
  const std::uint32_t rail_;
  const Limits limits_;
  const FindGrant find_grant_;
  BufferPool receives_, sends_;
  std::size_t spare_receives_ = 0;                  // posted for peers that are gone
  std::vector<Buffer*> unposted_;                   // receives that the provider had no room for
  std::vector<Buffer*> failed_receives_;            // not posted again yet
  std::unordered_map<std::uint64_t, Link> links_;   // by own token
  std::unordered_map<std::uint64_t, Op*> pending_;  // by the number of the request
  std::deque<Answer> answers_;  // waiting for a buffer; bounded by the peers' credits
  // Sent, by the numbers of their buffers, and not known to have arrived.
  std::unordered_map<std::uint64_t, Answer> answering_;
  // They did not arrive, and are sent again at their times.
  std::vector<std::pair<Clock::time_point, Answer>> missed_;
  std::uint64_t next_number_ = 1;  // 0 marks receives
};

}  // namespace weft::core
