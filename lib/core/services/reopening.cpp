#include "services/reopening.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "control/plane.hpp"
#include "services/outside_callbacks.hpp"
#include "wire/control_codec.hpp"

namespace weft::core {

Result<void> Reopening::reopen(std::string_view name, Deadline deadline) {
  Rail* const rail = around_.rails.find(name);
  if (rail == nullptr)
    return fail(Code::invalid_argument, fmt::format("the engine has no rail '{}'", name));
  if (auto reopened = close_and_open(*rail, deadline); !reopened) return reopened;
  // A peer that does not answer in this time is about to be found dead.
  const Deadline patience = Deadline::in(std::min(deadline.left(), around_.config.death_after));
  for (const auto& followed : reopenings_.followers(rail->index()))
    around_.workers.wait([&](Deadline until) { return followed->wait(until); }, patience);
  return {};
}

/// One at a time: a caller that comes meanwhile can't know what was posted when it began.
Result<void> Reopening::close_and_open(Rail& rail, Deadline deadline) {
  if (auto outside = check_outside_callbacks(); !outside) return outside;
  if (!rail.endpoint().reopens())
    return fail(Error(Code::unsupported, "rails of this provider can't be opened again")
                    .with_rail(rail.name()));
  const auto ended = [&](const Reopenings::Done& done) {
    return around_.workers.wait([&](Deadline until) { return done->wait(until); }, deadline);
  };
  const auto done = std::make_shared<CompletionSlot>();
  bool in_time = true;
  while (const auto other = reopenings_.begin(rail.index(), done))
    if (!(in_time = ended(other))) break;
  if (in_time) {
    begin(rail, done);
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

/// Does not wait.
void Reopening::begin(Rail& rail, const Reopenings::Done& done) {
  const auto begin = [this, alive = around_.owner.keep_alive(), &rail, done] {
    rail.suspend();
    const auto started =
        start_detached([this, alive, index = rail.index(), done] { reopen_detached(index, done); });
    if (started) return;
    rail.resume();
    reopenings_.end(rail.index());
    done->complete(started.error());
  };
  around_.workers.hand_to(rail.worker(), begin);
}

/// Closing an endpoint may block for ever in some providers: by a thread of its own.
void Reopening::reopen_detached(std::uint32_t index, const Reopenings::Done& done) {
  const CallGate::Call call(around_.gate);  // rails stay
  if (const auto refused = call.refused()) {
    reopenings_.end(index);
    return done->complete(refused);
  }
  Rail& rail = *around_.rails[index];
  around_.grants.rail_closes(index);
  const auto opened = rail.reopen();
  if (opened) {
    around_.segments.rail_opened(rail);
    around_.grants.renew_lease_words(index);
  }
  // Where it could not even be closed nothing has changed.
  if (opened || rail.closed()) {
    auto renewed = around_.grants.rail_opened(index, opened.has_value());
    if (opened) tell_all(rail, std::move(renewed));
  }
  log(LogLevel::warning, "rail {} was {}", rail.name(),
      opened ? "closed and opened again"
             : fmt::format("to be closed and opened again: {}", opened.error().to_string()));
  const std::optional<Error> error = opened ? std::nullopt : std::optional(opened.error());
  const auto resume = [this, alive = around_.owner.keep_alive(), &rail, done, error] {
    rail.resume();
    reopenings_.end(rail.index());
    done->complete(error);
  };
  around_.workers.hand_to(rail.worker(), resume);
}

void Reopening::watch(Clock::time_point now) {
  // Under manual progress it may be the application that does not look.
  if (around_.config.progress == Progress::manual) return;
  for (const auto& rail : around_.rails) {
    const Rail::Counters& counters = rail->counters();
    const std::uint64_t lost = counters.lost;
    const bool tells = rail->capability().path_failures;
    Watched& watched =
        watches_.try_emplace(rail->index(), 2 * around_.config.suspect_after).first->second;
    const bool silent = watched.rail.due(
        {tells && counters.in_flight > 0, counters.operations, rail->closed()}, now);
    const bool dead = watched.lost.due({.out = lost > 0, .completed = lost}, now);
    if (!silent && !dead) continue;
    const auto done = std::make_shared<CompletionSlot>();
    if (!rail->endpoint().reopens() || reopenings_.begin(rail->index(), done)) continue;
    if (silent) rail->worker().post([each = rail.get()] { each->scheduler().went_silent(); });
    begin(*rail, done);
  }
}

/// Keys before the address: nothing gets here that has the old ones.
void Reopening::tell_all(Rail& rail, OwnedGrants::Renewed renewed) {
  const Blob& address = rail.endpoint().address();
  around_.control->rail_moved(rail.index(), address);
  reopenings_.has_moved(rail.index(), address);  // before all_up() is asked
  for (auto& [link, keys] : renewed)
    for (std::size_t from = 0; from < keys.size(); from += limits::lost_keys) {
      const auto begin = keys.begin() + static_cast<std::ptrdiff_t>(from);
      const auto count = std::min(keys.size() - from, limits::lost_keys);
      around_.control->send(
          link, RailMoved{rail.index(), {}, {begin, begin + static_cast<std::ptrdiff_t>(count)}});
    }
  for (const auto& peer : around_.peers.all_up()) tell(*peer, rail.index(), address);
}

void Reopening::tell(const PeerState& peer, std::uint32_t rail, Blob address) {
  reopenings_.will_follow(peer.link, rail);
  around_.control->send(peer.link, RailMoved{rail, std::move(address), {}});
  if (!peer.up()) reopenings_.link_down(peer.link);
}

/// The peer may have been told of these rails by their first addresses.
void Reopening::peer_up(const PeerState& peer) {
  for (const auto& [rail, address] : reopenings_.moved()) tell(peer, rail, address);
}

void Reopening::take(PeerState& peer, RailMoved&& notice) {
  if (notice.address.empty() || notice.rail >= peer.introduction.rails.size()) return;
  follow(peer, notice.rail, std::move(notice.address));
  around_.control->send(peer.link, RailFollowed{notice.rail});
}

void Reopening::take(const PeerState& peer, const RailFollowed& notice) {
  reopenings_.followed(peer.link, notice.rail);
}

void Reopening::follow(PeerState& peer, std::uint32_t rail, Blob address) {
  if (peer.rail_address(rail) == address) return;
  peer.rail_moved(rail, std::move(address));
  const auto self = around_.peers.find(peer.link);
  for (const auto& route : peer.routes) {
    if (!route->addresses.contains(rail)) continue;
    if (auto reached = route->rail->reach(self, rail); !reached)
      log(LogLevel::warning, "peer {}: {}", peer.introduction.name, reached.error().to_string());
    route->rail->worker().post([self, own = route->rail] { own->peer_moved(*self); });
  }
}

}  // namespace weft::core
