#include "control/liveness.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "control/plane.hpp"
#include "control/sockets.hpp"

namespace weft::core {
namespace {

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

std::optional<Error> Pulse::verdict(Clock::time_point now, Nanoseconds death_after) const {
  if (now - heard_ >= death_after)
    return Error(Code::peer_down, fmt::format("nothing was heard from the peer for {:.1f} s: it is "
                                              "frozen, cut off or dead",
                                              seconds(now - heard_)));
  return std::nullopt;
}

/// Without a descriptor for it, silence tells of the few ends that the socket does not.
void Connection::watch(Result<Process> process) {
  if (!process) return;
  watched_ = std::make_unique<WatchedProcess>(plane_.context());
  if (hand_over(std::move(*process).take_descriptor(), watched_->descriptor))
    return watched_.reset();
  const auto ended = [this, self = shared()](const std::error_code& cancelled) {
    if (!cancelled && stage != Stage::over)
      plane_.end(shared(), LinkEnd::connection_lost,
                 Error(Code::peer_down, "the process of " + who() + " has ended"), std::nullopt);
  };
  watched_->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                  [this, self = shared(), ended](const std::error_code& error) {
                                    if (error || !watched_) return;
                                    // What it said last may not be read yet.
                                    watched_->last_words.expires_after(plane_.tuning().linger);
                                    watched_->last_words.async_wait(ended);
                                  });
}

void Connection::note_health(Clock::time_point now) {
  if (stage != Stage::up) return;
  const bool silent = now >= pulse.due(plane_.config().suspect_after);
  const Health before = health;
  health = silent ? Health::silent : late_threads ? Health::slow : Health::up;
  if (health != before) plane_.health(id, health);
}

void ControlPlane::start_beating() {
  next_beat_ = Clock::now() + config_.heartbeat;
  wait_for_beat(next_beat_);
}

void ControlPlane::wait_for_beat(Clock::time_point when) {
  beat_timer_.expires_at(when);
  beat_timer_.async_wait([this, when](const std::error_code& cancelled) {
    if (cancelled || shut_down_) return;
    const Clock::time_point now = Clock::now();
    // A timer this late means that the whole process was stopped, or its control thread kept busy:
    // what peers said meanwhile still waits in the sockets.
    if (now - when > config_.heartbeat) forgive(now - when);
    if (now >= next_beat_) {
      send_heartbeats();
      next_beat_ = now + config_.heartbeat;
    }
    wait_for_beat(drop_dead_peers(now));
  });
}

void ControlPlane::forgive(Nanoseconds lateness) {
  for (const auto& [id, connection] : connections_) connection->pulse.forgive(lateness);
}

void ControlPlane::send_heartbeats() {
  const bool progressing = !config_.progress_alive || config_.progress_alive();
  for (const auto& [id, connection] : connections_)
    if (connection->chosen()) connection->tell(Heartbeat{progressing});
}

Clock::time_point ControlPlane::drop_dead_peers(Clock::time_point now) {
  Clock::time_point next = next_beat_;
  std::vector<std::pair<ConnectionPtr, Error>> dead;
  for (const auto& [id, connection] : connections_) {
    if (!connection->chosen()) continue;
    connection->note_health(now);
    if (std::optional<Error> why = connection->pulse.verdict(now, config_.death_after)) {
      dead.emplace_back(connection, std::move(*why));
      continue;
    }
    for (const Nanoseconds silence : {config_.suspect_after, config_.death_after})
      if (const auto due = connection->pulse.due(silence); due > now) next = std::min(next, due);
  }
  for (const auto& [connection, why] : dead)
    end(connection, LinkEnd::silent, why, Goodbye{why.message()});
  return next;
}

}  // namespace weft::core
