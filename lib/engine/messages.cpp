// Engine: signals and tagged messages.
#include <fmt/format.h>

#include "base/callback.hpp"
#include "device/stream_gate.hpp"
#include "engine/engine_state.hpp"

namespace weft::core {

Result<void> EngineState::send(const std::shared_ptr<PeerState>& peer, MessageKind kind,
                               std::uint64_t tag, Bytes bytes, Deadline deadline) {
  if (auto own = check_own(*peer); !own) return own;
  if (!peer->up()) return fail(peer->down_error());
  if (auto checked = check_payload(*peer, bytes.size()); !checked) return checked;
  Outgoing message{kind, tag, Blob(bytes.begin(), bytes.end()), nullptr};
  const bool pushed = wait(
      [&](Deadline until) { return peer->outbox.push(message, until) || !peer->up(); }, deadline);
  if (!peer->up()) return fail(peer->down_error());
  if (!pushed)
    return fail(Error(Code::queue_full,
                      fmt::format("{} messages wait to be sent already", config_.send_queue))
                    .with_peer(peer->introduction.name));
  peer->message_rail().worker().attend(peer->message_rail(), peer);
  return {};
}

/// What is to be done when it ends. A stream that waits for it goes on once the result is let go,
/// too.
Result<std::function<void(const Error*)>> EngineState::notifier(Event::Kind kind, std::string peer,
                                                                NotifyOptions options) {
  std::shared_ptr<StreamGate> gate;
  if (options.cuda_stream) {
    auto closed = close_cuda_stream(*options.cuda_stream);
    if (!closed) return fail(std::move(closed.error()));
    gate = std::move(*closed);
  }
  return [this, kind, peer = std::move(peer), options = std::move(options),
          gate = std::move(gate)](const Error* error) {
    if (gate) gate->open();
    if (options.on_end) {
      const InCallback here;
      options.on_end(options.cookie, error);
    }
    if (options.event)
      events_.push({kind, options.cookie, State::active, peer,
                    error != nullptr ? std::optional(*error) : std::nullopt});
  };
}

/// `post` puts it into the mailbox; before that it has no end, and afterwards it may be over.
template <typename Wait, typename Post>
Result<std::shared_ptr<Wait>> EngineState::begin(std::shared_ptr<Wait> waits, Event::Kind kind,
                                                 NotifyOptions options, Post&& post) {
  if (options.cuda_stream && !options.deadline)
    options.deadline = Deadline::in(config_.default_timeout);
  const auto deadline = options.deadline;
  auto call = notifier(kind, waits->peer->introduction.name, std::move(options));
  if (!call) return fail(std::move(call.error()));
  waits->on_complete(std::move(*call));
  post(waits);
  if (deadline)
    dated_waits_.add(deadline->when(), waits, [weak = std::weak_ptr(waits)] {
      const auto alive = weak.lock();
      return alive && alive->peer->mailbox.give_up(alive);
    });
  return waits;
}

Result<std::shared_ptr<ExpectState>> EngineState::expect(const std::shared_ptr<PeerState>& peer,
                                                         std::uint64_t id, std::uint64_t count,
                                                         NotifyOptions options) {
  if (auto own = check_own(*peer); !own) return fail(std::move(own.error()));
  if (count == 0) return fail(Code::invalid_argument, "an expectation needs at least one signal");
  auto expectation = std::make_shared<ExpectState>(weak_from_this(), peer, id, count);
  return begin(std::move(expectation), Event::Kind::signals_arrived, std::move(options),
               [&](const auto& waits) { peer->mailbox.expect(waits); });
}

Result<std::shared_ptr<ReceiveState>> EngineState::receive(const std::shared_ptr<PeerState>& peer,
                                                           std::uint64_t tag, std::uint64_t mask,
                                                           NotifyOptions options) {
  if (auto own = check_own(*peer); !own) return fail(std::move(own.error()));
  auto receive = std::make_shared<ReceiveState>(weak_from_this(), peer, tag, mask);
  return begin(std::move(receive), Event::Kind::message_arrived, std::move(options),
               [&](const auto& waits) { peer->mailbox.receive(waits); });
}

void EngineState::handle(PeerState& peer, SignalFailed&& notice) {
  peer.mailbox.signal_failed(
      notice.signal, Error(Code::remote_failed,
                           fmt::format("the peer's transfer ended without its signal ({}: {})",
                                       to_string(notice.code), notice.reason))
                         .with_peer(peer.introduction.name));
}

void EngineState::handle(PeerState& peer, DetouredMessage&& notice) {
  peer.message_rail().worker().post(
      [peer = peers_.find(peer.link), message = std::move(notice.bytes)] {
        peer->message_rail().channel().take_detoured(*peer, message);
      });
}

void EngineState::handle(PeerState& peer, DetourTaken&&) {
  peer.message_rail().worker().post(
      [peer = peers_.find(peer.link)] { peer->message_rail().channel().detour_taken(*peer); });
}

}  // namespace weft::core
