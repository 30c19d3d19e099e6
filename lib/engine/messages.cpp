// Engine: signals and tagged messages.
#include <fmt/format.h>

#include "base/callback.hpp"
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

std::function<void(const Error*)> EngineState::notifier(Event::Kind kind, std::string peer,
                                                        NotifyOptions options) {
  return [this, kind, peer = std::move(peer), options = std::move(options)](const Error* error) {
    if (options.on_end) {
      const InCallback here;
      options.on_end(options.cookie, error);
    }
    if (options.event)
      events_.push({kind, options.cookie, State::active, peer,
                    error != nullptr ? std::optional(*error) : std::nullopt});
  };
}

Result<std::shared_ptr<ExpectState>> EngineState::expect(const std::shared_ptr<PeerState>& peer,
                                                         std::uint64_t id, std::uint64_t count,
                                                         NotifyOptions options) {
  if (auto own = check_own(*peer); !own) return fail(std::move(own.error()));
  if (count == 0) return fail(Code::invalid_argument, "an expectation needs at least one signal");
  auto expectation = std::make_shared<ExpectState>(weak_from_this(), peer, id, count);
  expectation->on_complete(
      notifier(Event::Kind::signals_arrived, peer->introduction.name, std::move(options)));
  peer->mailbox.expect(expectation);
  return expectation;
}

Result<std::shared_ptr<ReceiveState>> EngineState::receive(const std::shared_ptr<PeerState>& peer,
                                                           std::uint64_t tag, std::uint64_t mask,
                                                           NotifyOptions options) {
  if (auto own = check_own(*peer); !own) return fail(std::move(own.error()));
  auto receive = std::make_shared<ReceiveState>(weak_from_this(), peer, tag, mask);
  receive->on_complete(
      notifier(Event::Kind::message_arrived, peer->introduction.name, std::move(options)));
  peer->mailbox.receive(receive);
  return receive;
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
