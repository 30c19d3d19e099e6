// The public Peer: what is known of it, and calls that concern it, each of which goes to a service.
#include <weft/engine.hpp>

#include "engine/engine_state.hpp"

namespace weft {
namespace {

/// Runs `body` with the engine, if that can still be used.
template <typename Body>
auto call_of(const std::weak_ptr<core::EngineState>& weak, Body&& body)
    -> decltype(body(std::declval<core::EngineState&>())) {
  const auto engine = weak.lock();
  if (!engine) return fail(Code::closed, "the peer's engine is gone");
  return core::call(engine, [&] { return body(*engine); });
}

}  // namespace

Peer::Peer(std::shared_ptr<core::PeerState> state, std::weak_ptr<core::EngineState> engine)
    : state_(std::move(state)), engine_(std::move(engine)) {}
const std::string& Peer::name() const noexcept {
  return state_->introduction.name;
}
std::uint64_t Peer::incarnation() const noexcept {
  return state_->introduction.incarnation;
}
bool Peer::up() const noexcept {
  return state_->up();
}
Health Peer::health() const noexcept {
  return state_->health();
}
std::optional<Error> Peer::why_down() const {
  return state_->why_down();
}
bool Peer::same_host() const noexcept {
  return state_->same_host;
}
const std::string& Peer::address() const noexcept {
  return state_->introduction.address;
}
const std::string& Peer::route_reason() const noexcept {
  return state_->route_reason;
}
const std::string& Peer::fallback() const noexcept {
  return state_->fallback;
}
std::vector<std::string> Peer::rails() const {
  std::vector<std::string> names;
  for (const auto& route : state_->routes) names.push_back(route->rail_name);
  return names;
}

Result<Remote> Peer::lookup(std::string_view name, Deadline deadline) const {
  return call_of(engine_,
                 [&](core::EngineState& engine) {
                   return engine.imports.lookup(*state_, name, deadline);
                 })
      .map([](auto&& remote) { return Remote(std::move(remote)); });
}

Result<void> Peer::disconnect() const {
  return call_of(engine_,
                 [&](core::EngineState& engine) { return engine.peers.disconnect(*state_); });
}

Result<void> Peer::signal(const Signal& signal, Deadline deadline) const {
  return call_of(engine_, [&](core::EngineState& engine) {
    return engine.messages.send(state_, core::MessageKind::signal, signal.id, signal.bytes,
                                deadline);
  });
}

Result<Expectation> Peer::expect(std::uint64_t id, std::uint64_t count,
                                 NotifyOptions options) const {
  return call_of(engine_,
                 [&](core::EngineState& engine) {
                   return engine.messages.expect(state_, id, count, std::move(options));
                 })
      .map([](auto&& expectation) { return Expectation(std::move(expectation)); });
}

Result<void> Peer::forget(std::uint64_t id) const {
  return forget(id, id);
}

Result<void> Peer::forget(std::uint64_t first, std::uint64_t last) const {
  return call_of(engine_, [&](core::EngineState& engine) {
    return engine.messages.forget(*state_, first, last);
  });
}

Result<void> Peer::send(std::uint64_t tag, Bytes bytes, Deadline deadline) const {
  return call_of(engine_, [&](core::EngineState& engine) {
    return engine.messages.send(state_, core::MessageKind::tagged, tag, bytes, deadline);
  });
}

Result<Receive> Peer::receive(std::uint64_t tag, std::uint64_t mask, NotifyOptions options) const {
  return call_of(engine_,
                 [&](core::EngineState& engine) {
                   return engine.messages.receive(state_, tag, mask, std::move(options));
                 })
      .map([](auto&& receive) { return Receive(std::move(receive)); });
}

Result<Message> Peer::recv(std::uint64_t tag, std::uint64_t mask, Deadline deadline) const {
  return receive(tag, mask).and_then([&](Receive&& receive) {
    auto message = receive.wait(deadline);
    // One that came at the last moment must not be lost with the request.
    if (!message && message.error().code() == Code::timed_out && !receive.state_->give_up())
      return receive.wait(Deadline::in(std::chrono::seconds(1)));
    return message;
  });
}

Result<Path> Peer::explain(const Place& local, const Place& remote, Direction direction,
                           const TransferOptions& options) const {
  return call_of(engine_, [&](core::EngineState& engine) {
    return engine.paths.explain_places(local, state_, remote, direction, options);
  });
}

}  // namespace weft
