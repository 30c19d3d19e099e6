// Engine: closing a rail and opening it again, which ends for certain whatever was posted over it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/callback.hpp"
#include "base/detached_thread.hpp"
#include "base/log.hpp"
#include "engine/engine_state.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {

Result<void> EngineState::reopen(std::string_view name, Deadline deadline) {
  const auto rail = std::find_if(rails_.begin(), rails_.end(),
                                 [&](const auto& each) { return each->name() == name; });
  if (rail == rails_.end())
    return fail(Code::invalid_argument, fmt::format("the engine has no rail '{}'", name));
  if (auto reopened = close_and_open(**rail, deadline); !reopened) return reopened;
  // A peer that does not answer within this time is about to be found dead.
  const Deadline patience = Deadline::in(std::min(deadline.left(), config_.death_after));
  for (const auto& followed : reopening_.followers((*rail)->index()))
    wait([&](Deadline until) { return followed->wait(until); }, patience);
  return {};
}

/// One at a time: whoever comes meanwhile does not know what was posted when it began.
Result<void> EngineState::close_and_open(Rail& rail, Deadline deadline) {
  if (InCallback::now())
    return fail(Code::invalid_argument, "this can't be called from a callback: it waits");
  if (!rail.endpoint().reopens())
    return fail(Error(Code::unsupported, "rails of this provider can't be opened again")
                    .with_rail(rail.name()));
  const auto ended = [&](const Reopenings::Done& done) {
    return wait([&](Deadline until) { return done->wait(until); }, deadline);
  };
  const auto done = std::make_shared<CompletionSlot>();
  bool in_time = true;
  while (const auto other = reopening_.begin(rail.index(), done))
    if (!(in_time = ended(other))) break;
  if (in_time) {
    begin_reopening(rail, done);
    in_time = ended(done);
  }
  if (!in_time)
    return fail(Error(Code::timed_out,
                      "the rail was not closed and opened again in time: what it had posted may "
                      "still be out")
                    .with_rail(rail.name()));
  if (const auto& error = done->error()) return fail(*error);
  return {};
}

/// run_on() for whoever must not wait.
void EngineState::hand_to(Worker& worker, const std::function<void()>& task) {
  if (config_.progress == Progress::threads) return worker.post(task);
  run_on(worker, task, Deadline::now());
}

/// Does not wait.
void EngineState::begin_reopening(Rail& rail, const Reopenings::Done& done) {
  const auto begin = [self = shared_from_this(), &rail, done] {
    rail.suspend();
    const auto started =
        start_detached([self, index = rail.index(), done] { self->reopen_aside(index, done); });
    if (started) return;
    rail.resume();
    self->reopening_.end(rail.index());
    done->complete(started.error());
  };
  hand_to(rail.worker(), begin);
}

/// Memory of GPUs' that the rail can't register any more goes through its bounce-buffer transport
/// from now on.
void EngineState::stage_what_was_lost(const Rail& rail) {
  // Whoever adds a segment later sees that the rail was opened again. Not under the lock: another
  // thread may be closing registrations, which takes long.
  const auto all = [&] {
    const std::lock_guard lock(segments_mutex_);
    return segments_;
  }();
  for (const auto& keys : all)
    if (keys->rail_opened(rail.index()))
      log(LogLevel::warning, "rail {}: a GPU's memory is staged since it was opened again: {}",
          rail.name(), keys->why_staged(rail.index()));
}

/// Closing an endpoint may block for ever in some providers: by a thread of its own.
void EngineState::reopen_aside(std::uint32_t index, const Reopenings::Done& done) {
  const Call call(*this);  // rails stay
  if (const auto refused = call.refused()) {
    reopening_.end(index);
    return done->complete(refused);
  }
  Rail& rail = *rails_[index];
  owned_.rail_closes(index);
  const auto opened = rail.reopen();
  if (opened) {
    stage_what_was_lost(rail);
    lease_words_->rail_opened(index);
  }
  // Where it could not even be closed nothing has changed.
  if (opened || rail.closed()) {
    auto renewed = owned_.rail_opened(index, opened.has_value());
    if (opened) tell_moved(rail, std::move(renewed));
  }
  log(LogLevel::warning, "rail {} was {}", rail.name(),
      opened ? "closed and opened again"
             : fmt::format("to be closed and opened again: {}", opened.error().to_string()));
  const std::optional<Error> error = opened ? std::nullopt : std::optional(opened.error());
  const auto resume = [self = shared_from_this(), &rail, done, error] {
    rail.resume();
    self->reopening_.end(rail.index());
    done->complete(error);
  };
  hand_to(rail.worker(), resume);
}

/// A rail that neither completes nor fails what it has out, which some providers don't do when a
/// NIC dies (efa in libfabric 1.17), and one that could not be opened again. On the control thread.
void EngineState::watch_rails() {
  // Under manual progress it may be the application that does not look.
  if (config_.progress == Progress::manual) return;
  const auto now = Clock::now();
  for (const auto& rail : rails_) {
    const Rail::Counters& counters = rail->counters();
    const bool tells = rail->capability().path_failures;
    RailWatch& watch =
        rail_watches_.try_emplace(rail->index(), 2 * config_.death_after).first->second;
    if (!watch.due({tells && counters.in_flight > 0, counters.operations, rail->closed()}, now))
      continue;
    const auto done = std::make_shared<CompletionSlot>();
    if (!rail->endpoint().reopens() || reopening_.begin(rail->index(), done)) continue;
    rail->worker().post([each = rail.get()] { each->scheduler().went_silent(); });
    begin_reopening(*rail, done);
  }
}

/// Keys before the address: nothing gets here that has the old ones.
void EngineState::tell_moved(Rail& rail, OwnedGrants::Renewed renewed) {
  const Blob& address = rail.endpoint().address();
  control_->rail_moved(rail.index(), address);
  reopening_.has_moved(rail.index(), address);  // before it is seen who is up
  for (auto& [link, keys] : renewed)
    for (std::size_t from = 0; from < keys.size(); from += limits::lost_keys) {
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from);
      const auto count = std::min(keys.size() - from, limits::lost_keys);
      control_->send(
          link, RailMoved{rail.index(), {}, {begin, begin + static_cast<std::ptrdiff_t>(count)}});
    }
  for (const auto& peer : peers_.all_up()) tell_moved(*peer, rail.index(), address);
}

void EngineState::tell_moved(const PeerState& peer, std::uint32_t rail, Blob address) {
  reopening_.will_follow(peer.link, rail);
  control_->send(peer.link, RailMoved{rail, std::move(address), {}});
  if (!peer.up()) reopening_.link_down(peer.link);
}

/// Those that a peer which is up now may have been told of by their first addresses.
void EngineState::tell_moved_rails(const PeerState& peer) {
  for (const auto& [rail, address] : reopening_.moved()) tell_moved(peer, rail, address);
}

void EngineState::handle(PeerState& peer, RailMoved&& notice) {
  imported_.take(peer, notice.renewed);
  if (notice.address.empty() || notice.rail >= peer.introduction.rails.size()) return;
  follow(peer, notice.rail, std::move(notice.address));
  control_->send(peer.link, RailFollowed{notice.rail});
}

void EngineState::handle(PeerState& peer, RailFollowed&& notice) {
  reopening_.followed(peer.link, notice.rail);
}

void EngineState::follow(PeerState& peer, std::uint32_t rail, Blob address) {
  if (peer.rail_address(rail) == address) return;
  peer.rail_moved(rail, std::move(address));
  const auto self = peers_.find(peer.link);
  for (const auto& route : peer.routes) {
    if (!route->addresses.contains(rail)) continue;
    if (auto reached = route->rail->reach(self, rail); !reached)
      log(LogLevel::warning, "peer {}: {}", peer.introduction.name, reached.error().to_string());
    route->rail->worker().post([self, own = route->rail] { own->peer_moved(*self); });
  }
}

}  // namespace weft::core
