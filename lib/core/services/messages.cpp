#include "services/messages.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/thread.hpp"
#include "device/stream_gate.hpp"

namespace weft::core {
namespace {

void count_failed(Ledger* ledger, const ExpectState&, Code code) {
  if (ledger != nullptr) ledger->rare().expectation_failed(code);
}
void count_failed(Ledger* ledger, const ReceiveState&, Code code) {
  if (ledger != nullptr) ledger->rare().receive_failed(code);
}

}  // namespace

Result<void> Messages::send(const std::shared_ptr<PeerState>& peer, MessageKind kind,
                            std::uint64_t tag, Bytes bytes, Deadline deadline) {
  if (!peer->up()) return fail(peer->down_error());
  if (auto checked = check_payload(*peer, bytes.size()); !checked) return checked;
  Outgoing message{kind, tag, Blob(bytes.begin(), bytes.end()), nullptr};
  const bool pushed = workers_.wait(
      [&](Deadline until) { return peer->outbox.push(std::move(message), until) || !peer->up(); },
      deadline);
  if (!peer->up()) return fail(peer->down_error());
  if (!pushed)
    return fail(Error(Code::queue_full,
                      fmt::format("{} messages wait to be sent already", config_.send_queue))
                    .with_peer(peer->introduction.name));
  peer->message_rail().worker().attend(peer->message_rail(), peer);
  return {};
}

Result<void> Messages::check_payload(const PeerState& peer, std::size_t bytes) const {
  const std::size_t most =
      std::min<std::size_t>(config_.max_message, peer.introduction.max_message);
  if (bytes <= most) return {};
  return fail(Error(Code::invalid_argument,
                    fmt::format("a message may carry {} bytes between these two, not {}; larger "
                                "data goes by transfers",
                                most, bytes))
                  .with_peer(peer.introduction.name));
}

/// `Wait` that tells of its end as its caller asked.
template <typename Wait>
class Messages::Notifying final : public Wait {
 public:
  template <typename... Of>
  Notifying(const Owner& owner, EventQueue& events, Ledger* ledger,
            const std::shared_ptr<PeerState>& peer, Event::Kind kind, NotifyOptions&& options,
            std::unique_ptr<StreamGate> gate, Of... what)
      : Wait(owner.handle, peer, what...),
        events_(events),
        ledger_(ledger),
        kind_(kind),
        options_(std::move(options)),
        gate_(std::move(gate)) {}

 private:
  void ended(const Error* error) override {
    if (error != nullptr) count_failed(ledger_, *this, error->code());
    if (gate_) gate_->open();
    // Let go: what it holds may hold this.
    if (const auto on_end = std::exchange(options_.on_end, nullptr)) {
      const InCallback here;
      on_end(options_.cookie, error);
    }
  }
  void announce(const Error* error) override {
    if (options_.event)
      events_.push({kind_,
                    options_.cookie,
                    State::active,
                    this->peer->introduction.name,
                    error != nullptr ? std::optional(*error) : std::nullopt,
                    {}});
  }

  // What completes it is the engine's, as these are.
  EventQueue& events_;
  Ledger* const ledger_;  // null where nothing is to be counted
  const Event::Kind kind_;
  NotifyOptions options_;
  // A stream that waits for it goes on once this is let go, too.
  const std::unique_ptr<StreamGate> gate_;
};

/// May be complete when this returns.
template <typename Wait, typename... Of>
Result<std::shared_ptr<Wait>> Messages::begin(const std::shared_ptr<PeerState>& peer,
                                              Event::Kind kind, NotifyOptions options, Of... what) {
  std::unique_ptr<StreamGate> gate;
  if (options.gpu_stream) {
    if (!options.deadline) options.deadline = Deadline::in(config_.default_timeout);
    auto closed = hold_stream(*options.gpu_stream);
    if (!closed) return fail(std::move(closed.error()));
    gate = std::move(*closed);
  }
  const auto deadline = options.deadline;
  const std::shared_ptr<Wait> waits = std::make_shared<Notifying<Wait>>(
      owner_, events_, ledger_.get(), peer, kind, std::move(options), std::move(gate), what...);
  peer->mailbox.await(waits);
  if (deadline) dated_waits_.add(deadline->when(), waits);
  return waits;
}

Result<std::shared_ptr<ExpectState>> Messages::expect(const std::shared_ptr<PeerState>& peer,
                                                      std::uint64_t id, std::uint64_t count,
                                                      NotifyOptions options) {
  if (count == 0) return fail(Code::invalid_argument, "an expectation needs at least one signal");
  const Late late = options.late;
  if (late > Late::drop)
    return fail(Code::invalid_argument, "NotifyOptions::late is not a valid value");
  return begin<ExpectState>(peer, Event::Kind::signals_arrived, std::move(options), id, count,
                            late);
}

Result<std::shared_ptr<ReceiveState>> Messages::receive(const std::shared_ptr<PeerState>& peer,
                                                        std::uint64_t tag, std::uint64_t mask,
                                                        NotifyOptions options) {
  return begin<ReceiveState>(peer, Event::Kind::message_arrived, std::move(options), tag, mask);
}

void Messages::given_up(const ExpectState& expectation) {
  count_failed(ledger_.get(), expectation, Code::cancelled);
}

void Messages::given_up(const ReceiveState& receive) {
  count_failed(ledger_.get(), receive, Code::cancelled);
}

Result<void> Messages::forget(PeerState& peer, std::uint64_t first, std::uint64_t last) {
  if (first > last)
    return fail(Code::invalid_argument, fmt::format("empty range of ids: {} to {}", first, last));
  peer.mailbox.forget(first, last);
  return {};
}

void Messages::take(PeerState& peer, const SignalFailed& notice) {
  if (peer.traffic)
    peer.traffic->add_of_peer(notice.reads ? Direction::read : Direction::write, notice.carried);
  peer.mailbox.signal_failed(
      notice.signal, Error(Code::remote_failed,
                           fmt::format("the peer's transfer ended without its signal ({}: {})",
                                       to_string(notice.code), notice.reason))
                         .with_peer(peer.introduction.name));
}

void Messages::take(const PeerState& peer, FallbackMessage&& notice) {
  peer.message_rail().worker().post(
      [peer = peers_.find(peer.link), message = std::move(notice.bytes)] {
        peer->message_rail().messenger().arrived_by_control(*peer, message);
      });
}

void Messages::take(const PeerState& peer, const FallbackTaken&) {
  peer.message_rail().worker().post([peer = peers_.find(peer.link)] {
    peer->message_rail().messenger().taken_by_control(*peer);
  });
}

void Messages::peer_leaves(const std::shared_ptr<PeerState>& peer, std::uint64_t taken) {
  peer->message_rail().worker().post(
      [peer, taken] { peer->message_rail().messenger().taken_at_goodbye(*peer, taken); });
}

}  // namespace weft::core
