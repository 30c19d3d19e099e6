#include "nixl/link.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <tuple>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

// What may wait for one agent: a guess. An agent that takes nothing is found out long before.
constexpr std::size_t most_tasks = 1 << 16;

Result<Peer> meet_engine(Engine& engine, const Connection& connection) {
  auto peer = engine.connect(connection.address, Deadline::in(meeting_time));
  if (!peer || peer->name() == connection.engine) return peer;
  return fail(Error(Code::stale, fmt::format("{} answers at {} in place of {}: the metadata is of "
                                             "an earlier life",
                                             peer->name(), connection.address, connection.engine))
                  .with_peer(connection.engine));
}

unsigned bit_of(const Segment& local, const Remote& remote, Direction direction) {
  const bool reads = direction == Direction::read;
  const bool from_device = local.place().kind == MemoryKind::device;
  const bool to_device = remote.place().kind == MemoryKind::device;
  return 1U << ((reads ? 4U : 0U) + (from_device ? 2U : 0U) + (to_device ? 1U : 0U));
}

std::string text_of(const Path& path) {
  std::string text =
      fmt::format("over {}, rails {}; {} copies of each byte, {} by a CPU", path.provider,
                  fmt::join(path.rails, ", "), path.copies, path.cpu_copies);
  if (path.gbps > 0) text += fmt::format("; at most {:.0f} Gb/s: {}", path.gbps, path.limit);
  if (!path.not_used.empty()) text += fmt::format("; not used: {}", fmt::join(path.not_used, "; "));
  return text;
}

}  // namespace

Result<LinkPtr> Link::meet(const Side& side, const std::string& agent, const Connection& connection,
                           std::size_t signal_bytes) {
  const LinkPtr link(new Link(side, agent, signal_bytes));
  auto begun = link->later([link = link.get(), connection] {
    const auto peer = meet_engine(link->engine(), connection);
    if (!peer) refuse("an agent can't be reached", peer.error());
    link->met(peer);
  });
  if (!begun) return fail(std::move(begun.error()));
  return link;
}

void Link::met(const Result<Peer>& outcome) {
  const core::Lock lock(mutex_);
  outcome_ = outcome;
  state_ = outcome ? State::met : State::failed;
  met_.notify_all();
}

void Link::wait_met(Deadline deadline) {
  const core::Lock lock(mutex_);
  met_.wait(mutex_, deadline, [&] { return state_ != State::meeting; });
}

const Peer* Link::peer() const noexcept {
  return state_ == State::met ? &**outcome_ : nullptr;
}

Result<void> Link::outcome() const {
  if (state_ == State::failed) return fail(outcome_->error());
  return {};
}

bool Link::usable() const {
  return state_ == State::meeting || up();
}

Result<void> Link::later(Task task) {
  const core::Lock lock(mutex_);
  if (tasks_.size() >= most_tasks)
    return fail(Code::queue_full,
                fmt::format("agent '{}' has not answered, and {} requests and notifications wait "
                            "for it already",
                            agent_, tasks_.size()));
  tasks_.push_back(std::move(task));
  if (tasks_.size() > 1) return {};
  auto started = start();
  if (!started) tasks_.pop_front();
  return started;
}

Result<void> Link::start() {
  if (!side_.threads->enter()) return fail(Code::closed, "the backend is closed");
  const core::AllCores all_cores;
  auto started = core::start_detached([self = shared_from_this()]() mutable {
    const auto threads = self->side_.threads;
    self->work();
    self.reset();  // it may be the last owner of the engine
    threads->leave();
  });
  if (!started) side_.threads->leave();
  return started;
}

/// Until there is nothing left to do.
void Link::work() {
  for (bool more = true; more;) {
    Task task = first();
    try {
      task();
    } catch (const std::exception& error) {
      core::log(LogLevel::error, "NIXL backend: agent {}: {}", agent_, error.what());
      if (state_ == State::meeting) met(fail(Code::internal, error.what()));
    }
    task = nullptr;  // it may be the last owner of a request
    const core::Lock lock(mutex_);
    tasks_.pop_front();
    more = !tasks_.empty();
  }
}

Link::Task Link::first() {
  const core::Lock lock(mutex_);
  return std::move(tasks_.front());
}

bool Link::idle() const {
  const core::Lock lock(mutex_);
  return tasks_.empty();
}

Result<void> Link::notify(const Outgoing& notification) {
  if (auto reached = outcome(); !reached) return reached;
  std::size_t sent = 0;
  if (idle()) {  // so it is not being met, and nothing is overtaken
    auto gone = send_from(notification, sent, Deadline::now());
    if (gone || gone.error().code() != Code::queue_full) return gone;
  }
  return later([this, notification, sent, deadline = Deadline::in(timeout())]() mutable {
    const auto gone = send_from(notification, sent, deadline);
    if (gone) return;
    refuse("a notification was not sent", gone.error());
    if (sent > 0) std::ignore = send(withdrawal(notification.id()), Deadline::now());
  });
}

/// Counts the parts that have gone.
Result<void> Link::send_from(const Outgoing& notification, std::size_t& sent, Deadline deadline) {
  for (; sent < notification.parts(); ++sent)
    if (auto gone = send(notification.part(sent), deadline); !gone) return gone;
  return {};
}

Result<void> Link::send(const Blob& part, Deadline deadline) const {
  if (auto reached = outcome(); !reached) return reached;
  return peer()->signal({notification_signal, part}, deadline);
}

void Link::explain(const Segment& local, const Remote& remote, Direction direction) {
  const unsigned bit = bit_of(local, remote, direction);
  if ((explained_.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((explained_.fetch_or(bit) & bit) != 0) return;
  const auto path = engine().explain(local, remote, direction);
  if (!path) return;
  core::log(LogLevel::info, "NIXL agent {}: it is {} {}", agent_,
            direction == Direction::read ? "read" : "written", text_of(*path));
}

}  // namespace weft::nixl
