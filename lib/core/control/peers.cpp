#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "control/plane.hpp"

namespace weft::core {

// Which connection is the link.

void ControlPlane::choose(const ConnectionPtr& connection) {
  const auto place = places_.find(connection->peer.name);
  const ConnectionPtr link = place == places_.end() ? nullptr : place->second.link;
  if (!link || link->peer.incarnation != connection->peer.incarnation) {
    connection->tell(Choice{});
    return adopt(connection);
  }
  if (!connection->initiated) {
    connection->stage = Stage::duplicate;
    return connection->tell(Duplicate{link->peer.token});
  }
  move_attempts(connection, link);
  end(connection, LinkEnd::replaced, Error(Code::cancelled, "met already"), Goodbye{"met already"});
}

void ControlPlane::is_duplicate(const ConnectionPtr& connection, std::uint64_t token) {
  const auto named = std::find_if(connections_.begin(), connections_.end(), [&](const auto& other) {
    return other.second->self.token == token && other.second->stage != Stage::over &&
           other.second->peer.name == connection->peer.name && other.second != connection;
  });
  if (named == connections_.end()) return connection->tell(Lost{});
  move_attempts(connection, named->second);
  end(connection, LinkEnd::replaced, Error(Code::cancelled, "met already"), Goodbye{"met already"});
}

void ControlPlane::move_attempts(const ConnectionPtr& from, const ConnectionPtr& to) {
  for (const AttemptPtr& attempt : std::exchange(from->attempts, {})) join(attempt, to);
}

void ControlPlane::adopt(const ConnectionPtr& connection) {
  strangers_.erase(connection->id);
  connection->trust();
  connection->stage = Stage::meeting;
  connection->pulse.start(Clock::now());
  connection->limit(tuning_.meet_time);
  for (const AttemptPtr& attempt : connection->attempts)
    attempt->doing("waiting until both sides are ready");

  Place& place = places_[connection->peer.name];
  if (const ConnectionPtr old = std::exchange(place.link, connection)) {
    const bool restarted = old->peer.incarnation != connection->peer.incarnation;
    const Error why =
        restarted
            ? Error(Code::stale, fmt::format("{} was replaced by a new incarnation", old->who()))
            : Error(Code::peer_down, old->who() + " gave up this connection");
    const bool namesake = restarted && has_namesake(place, *old, *connection);
    end(old, restarted ? LinkEnd::restarted : LinkEnd::replaced, why,
        Goodbye{namesake ? "another engine of the same name has connected"
                         : "replaced by another connection"});
  }
  start_meeting(place);
}

bool ControlPlane::has_namesake(Place& place, const Connection& old, const Connection& fresh) {
  const auto now = Clock::now();
  if (!place.namesakes.replaced(old.peer.incarnation, fresh.peer.incarnation, now)) return false;
  if (place.namesakes.is_to_be_told(now))
    log(LogLevel::warning,
        "{} was replaced {} times within a minute by an engine that had been replaced itself: two "
        "engines have the same name, and each ends the other's connection (Config::name)",
        old.who(), place.namesakes.count());
  return true;
}

// The handler's calls.

void ControlPlane::start_meeting(Place& place) {
  const ConnectionPtr connection = place.link;
  if (!connection || place.leaving || connection->stage != Stage::meeting ||
      connection->meet_running || connection->met)
    return;
  connection->meet_running = true;
  ++meets_running_;
  asio::post(setup_, [this, connection] {
    Result<std::vector<RailOut>> out =
        fail(Code::cancelled, "the connection ended before the meeting");
    if (!connection->meet_unwanted && !silenced_)
      out = handler_.meet(connection->id, connection->self, connection->peer, connection->near);
    asio::post(io_, [this, connection, out = std::move(out)]() mutable {
      meeting_ended(connection, std::move(out));
    });
  });
}

void ControlPlane::meeting_ended(const ConnectionPtr& connection,
                                 Result<std::vector<RailOut>> out) {
  connection->meet_running = false;
  connection->met = out && out->empty();
  --meets_running_;
  if (connection->stage == Stage::over) {
    report_down(connection);
    const auto place = places_.find(connection->peer.name);
    place->second.leaving = nullptr;
    if (place->second.link)
      start_meeting(place->second);
    else
      places_.erase(place);
  } else if (!out) {
    const Error& why = out.error();
    end(connection, LinkEnd::unreachable, why, Refusal{why.code(), why.message()});
  } else {
    connection->out = std::move(*out);
    connection->tell(Ready{*connection->out});
    agree(connection);
  }
  note_if_quiet();
}

/// Each time without one more rail, so that it comes to an end.
void ControlPlane::agree(const ConnectionPtr& connection) {
  if (!connection->out || !connection->peer_out) return;
  if (connection->out->empty() && connection->peer_out->empty()) return go_up(connection);
  if (std::exchange(connection->met, false) && !silenced_)
    handler_.down(connection->id, LinkEnd::unreachable,
                  Error(Code::unavailable, "the peer can't use a rail: the two meet without it"));
  const std::vector<RailOut> ours = std::move(*connection->out);
  const std::vector<RailOut> theirs = std::move(*connection->peer_out);
  connection->out = connection->peer_out = std::nullopt;
  for (const RailOut& each : ours) connection->self.rails[each.rail].why_out = each.why;
  for (const RailOut& each : theirs)
    connection->peer.rails[each.rail].why_out = "seen by the peer: " + each.why;
  start_meeting(places_.at(connection->peer.name));
}

void ControlPlane::go_up(const ConnectionPtr& connection) {
  connection->stage = Stage::up;
  {
    const Lock lock(mutex_);
    up_.emplace(connection->id, connection);
  }
  if (!silenced_) handler_.up(connection->id, !connection->initiated);
  for (const AttemptPtr& attempt : std::exchange(connection->attempts, {}))
    succeed(attempt, connection);
}

void ControlPlane::received(LinkId link, Notice notice) {
  if (!silenced_) handler_.received(link, std::move(notice));
}

void ControlPlane::health(LinkId link, Health health) {
  if (!silenced_) handler_.health(link, health);
}

void ControlPlane::leaving(LinkId link, std::uint64_t taken) {
  if (!silenced_) handler_.leaving(link, taken);
}

void ControlPlane::refused(LinkEnd how, const Error& why) const {
  if (config_.on_refused && !silenced_) config_.on_refused(how, why);
}

void ControlPlane::report_down(const ConnectionPtr& connection) {
  if (!std::exchange(connection->met, false) || silenced_) return;
  handler_.down(connection->id, connection->how_over, *connection->why_over);
}

/// A goodbye tells a peer that was up what was taken of its messages.
std::optional<ControlMessage> ControlPlane::with_taken(const Connection& connection,
                                                       std::optional<ControlMessage> last) const {
  Goodbye* const goodbye = last ? std::get_if<Goodbye>(&*last) : nullptr;
  if (goodbye != nullptr && connection.stage == Stage::up && !silenced_)
    goodbye->taken = handler_.taken_from(connection.id);
  return last;
}

void ControlPlane::end(const ConnectionPtr& connection, LinkEnd how, const Error& why,
                       const std::optional<ControlMessage>& last) {
  if (connection->stage == Stage::over) return;
  const bool was_chosen = connection->chosen();
  connection->how_over = how;
  connection->why_over = Error(why).with_peer(connection->peer.name);
  connection->meet_unwanted = true;
  connection->retire(with_taken(*connection, last));
  forget(connection);
  const bool met = was_chosen && how != LinkEnd::unreachable;
  if (!connection->initiated && !met && why.code() != Code::cancelled) refused(how, why);
  report_down(connection);
  for (const AttemptPtr& attempt : std::exchange(connection->attempts, {}))
    attempt->finish(fail(*connection->why_over));
  if (was_chosen) miss(connection->peer.name);
}

/// Takes the connection out of all tables but those of open sockets.
void ControlPlane::forget(const ConnectionPtr& connection) {
  {
    const Lock lock(mutex_);
    up_.erase(connection->id);
  }
  const auto place = places_.find(connection->peer.name);
  if (place == places_.end()) return;
  if (connection->meet_running) place->second.leaving = connection;
  if (place->second.link == connection) place->second.link = nullptr;
  if (!place->second.link && !place->second.leaving) places_.erase(place);
}

void ControlPlane::closed(const ConnectionPtr& connection) {
  strangers_.erase(connection->id);
  connections_.erase(connection->id);
  note_if_quiet();
}

}  // namespace weft::core
