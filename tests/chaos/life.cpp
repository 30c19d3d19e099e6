#include "life.hpp"

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <utility>
#include <weft/testkit.hpp>

#include "pattern.hpp"
#include "rail/hooks.hpp"
#include "speech.hpp"

namespace weft::chaos {
namespace {

using namespace std::chrono_literals;

// How often the engine is looked at.
constexpr auto beat = 2ms;
// A transfer or a call may end so long after its deadline on a busy machine; more where the process
// stood still.
constexpr auto patience = 1s, patience_with_calls = 2s;
// When a signal that came once is looked for again.
constexpr auto echo_time = 300ms;

Deadline in_time(const Json& order) {
  return Deadline::in(std::chrono::milliseconds(order.at("ms").get<std::int64_t>()));
}

/// A letter for each piece.
std::string letters_of(const std::vector<Placed>& placed) {
  std::string letters;
  for (const Placed each : placed)
    letters += each == Placed::all ? 'a' : (each == Placed::none ? 'n' : 'u');
  return letters;
}

Config config_of(const Json& order) {
  const Json& asked = order.at("config");
  Config config;
  config.name = order.at("name");
  config.providers = asked.at("providers").get<std::vector<std::string>>();
  config.rails = asked.at("rails");
  config.threads = asked.at("threads");
  config.max_nics = asked.at("max_nics");
  config.chunk_bytes = asked.at("chunk_bytes");
  config.window = asked.at("window");
  config.bounce_buffer_bytes = asked.at("bounce_buffer_bytes");
  config.bounce_buffers = asked.at("bounce_buffers");
  config.message_credits = asked.at("message_credits");
  config.default_timeout = 3s;
  config.heartbeat = 200ms;
  config.death_after = std::chrono::milliseconds(asked.at("death_after_ms").get<std::int64_t>());
  config.peer_events = true;
  return config;
}

core::EngineHooks hooks_of(const Json& order) {
  const Json& asked = order.at("faults");
  if (asked.empty()) return {};
  testkit::Fault plan;
  plan.seed = asked.at("seed");
  plan.delay = asked.at("delay");
  plan.reorder = asked.at("reorder");
  plan.again = asked.at("again");
  plan.refuse = asked.at("refuse");
  plan.fail = asked.at("fail");
  plan.duplicate = asked.at("duplicate");
  plan.drop = asked.at("drop");
  testkit::Faults faults;
  faults.set(plan);
  return core::hooks_of(faults);
}

}  // namespace

Life::Life(const Json& order, Line& director, Stalls& stalls)
    : director_(director),
      stalls_(stalls),
      arena_(order.at("arena").get<std::string>(), layout().bytes) {
  auto opened = core::open_engine(config_of(order), hooks_of(order));
  if (!opened) throw std::runtime_error(opened.error().to_string());
  engine_.emplace(std::move(*opened));
  segments_.resize(layout().segments.size());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    auto segment = engine_->add(memory_of(i));
    if (!segment) throw std::runtime_error(segment.error().to_string());
    segments_[i] = std::make_shared<Segment>(std::move(*segment));
  }
  watch_ = std::thread([this] { watch(); });
}

Life::~Life() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  watch_.join();
}

/// Every other segment lies behind a descriptor, so that peers on the host may map it.
Memory Life::memory_of(std::size_t segment) const {
  const Range& whole = layout().segments.at(segment).whole;
  if (segment % 2 == 0) return Memory::map(arena_.fd(), whole.offset, whole.length);
  return Memory::adopt(arena_.data() + whole.offset, whole.length);
}

Json Life::introduction() const {
  const Info info = engine_->info();
  return {{"address", info.address},
          {"incarnation", info.incarnation},
          {"rails", info.rails.size()},
          {"libfabric", info.rails.front().capability.libfabric_version}};
}

void Life::answer(const Json& order, Json words) {
  words["re"] = order.at("id");
  director_.say(words);
}

void Life::violation(const std::string& kind, std::uint64_t transfer, const std::string& text) {
  director_.say({{"what", "violation"}, {"kind", kind}, {"transfer", transfer}, {"text", text}});
}

void Life::carry_out(const Json& order) {
  static const std::map<std::string, void (Life::*)(const Json&)> orders = {
      {"grant", &Life::grant},   {"connect", &Life::connect}, {"import", &Life::import},
      {"expect", &Life::expect}, {"give_up", &Life::give_up}, {"transfer", &Life::transfer},
      {"cancel", &Life::cancel}, {"revoke", &Life::revoke},   {"release", &Life::release},
      {"fence", &Life::fence},   {"add", &Life::add},
  };
  (this->*orders.at(order.at("do").get<std::string>()))(order);
}

// Meeting, granting, importing.

void Life::run_timed(const Json& order, std::function<Json(Deadline)> call) {
  const Deadline deadline = in_time(order);
  const Nanoseconds stalls_before = stalls_.total();
  tasks_.run([this, order, deadline, stalls_before, call = std::move(call)] {
    Json words = call(deadline);
    const Nanoseconds late = Clock::now() - deadline.when();
    if (late > patience_with_calls + 2 * (stalls_.total() - stalls_before))
      violation("deadline", 0,
                fmt::format("a call came back {} ms too late: {}", late / 1ms,
                            order.at("do").get<std::string>()));
    answer(order, std::move(words));
  });
}

void Life::connect(const Json& order) {
  run_timed(order, [this, address = order.at("address").get<std::string>()](Deadline deadline) {
    const auto peer = engine_->connect(address, deadline);
    return peer ? Json{{"ok", true}} : Json{{"ok", false}, {"error", peer.error()}};
  });
}

void Life::grant(const Json& order) {
  const auto& segment = segments_.at(order.at("segment").get<std::size_t>());
  const auto ranges = order.at("ranges").get<std::vector<Range>>();
  const std::int64_t ttl = order.at("ttl_ms");
  auto made = segment->grant(ranges, static_cast<Rights>(order.at("rights").get<unsigned>()),
                             ttl == 0 ? unlimited : Nanoseconds(ttl * 1ms));
  if (!made) return answer(order, {{"ok", false}, {"error", made.error()}});
  Json blob = Json::array();
  for (const std::byte each : made->blob()) blob.push_back(std::to_integer<unsigned>(each));
  grants_[order.at("grant")] = std::make_shared<Granted>(std::move(*made));
  answer(order, {{"ok", true}, {"blob", std::move(blob)}});
}

void Life::import(const Json& order) {
  Blob blob;
  for (const Json& each : order.at("blob")) blob.push_back(std::byte{each.get<std::uint8_t>()});
  run_timed(order, [this, blob, grant = order.at("grant").get<std::uint64_t>()](Deadline) {
    auto remote = engine_->import(blob);  // within default_timeout
    if (!remote) return Json{{"ok", false}, {"error", remote.error()}};
    const std::lock_guard lock(mutex_);
    remotes_.insert_or_assign(grant, std::move(*remote));
    return Json{{"ok", true}};
  });
}

// Ending grants and segments. Their memory is used for something else at once.

void Life::refill(const std::vector<Stretch>& stretches) {
  for (const Stretch& each : stretches)
    test::fill({arena_.data() + each.offset, each.length}, each.stream, each.from);
}

void Life::revoke(const Json& order) {
  end_grant(order, [](Grant& grant, Deadline deadline) { return grant.revoke(deadline); });
}

void Life::fence(const Json& order) {
  const auto reach = order.at("rails").get<bool>() ? FenceScope::rail : FenceScope::grant;
  end_grant(order,
            [reach](Grant& grant, Deadline deadline) { return grant.fence(deadline, reach); });
}

void Life::end_grant(const Json& order,
                     const std::function<Result<Revoked>(Grant&, Deadline)>& end) {
  const auto grant = grants_.at(order.at("grant").get<std::uint64_t>());
  const auto fill = order.at("fill").get<std::vector<Stretch>>();
  run_timed(order, [this, grant, fill, end](Deadline deadline) {
    const auto revoked = end(grant->handle, deadline);
    const auto at = Clock::now().time_since_epoch().count();
    if (!revoked) return Json{{"ok", false}, {"error", revoked.error()}};
    const bool quiescent = *revoked == Revoked::quiescent;
    if (quiescent) {
      const std::lock_guard lock(grant->mutex);
      grant->refilled = true;
      refill(fill);
    }
    return Json{{"ok", true}, {"quiescent", quiescent}, {"at", at}};
  });
}

void Life::release(const Json& order) {
  // Signals that come later find their memory used for something else.
  std::vector<std::shared_ptr<Granted>> grants;
  for (const Json& each : order.at("grants")) grants.push_back(grants_.at(each));
  const auto segment = segments_.at(order.at("segment").get<std::size_t>());
  const auto fill = order.at("fill").get<std::vector<Stretch>>();
  run_timed(order, [this, grants, segment, fill](Deadline deadline) {
    const auto released = segment->release(deadline);
    if (!released) return Json{{"ok", false}, {"error", released.error()}};
    std::vector<std::unique_lock<std::mutex>> locks;
    for (const auto& each : grants) {
      locks.emplace_back(each->mutex);
      each->refilled = true;
    }
    refill(fill);
    return Json{{"ok", true}};
  });
}

void Life::add(const Json& order) {
  const auto index = order.at("segment").get<std::size_t>();
  auto segment = engine_->add(memory_of(index));
  if (!segment) return answer(order, {{"ok", false}, {"error", segment.error()}});
  segments_[index] = std::make_shared<Segment>(std::move(*segment));
  answer(order, {{"ok", true}});
}

// Signals.

void Life::expect(const Json& order) {
  auto awaited = std::make_shared<Awaited>();
  awaited->id = order.at("transfer");
  awaited->peer = order.at("peer");
  awaited->grant = grants_.at(order.at("grant").get<std::uint64_t>());
  awaited->checks = order.at("checks").get<std::vector<Stretch>>();
  for (const Peer& peer : engine_->peers()) {
    if (peer.name() != awaited->peer) continue;
    NotifyOptions options;
    options.on_end = [this, awaited](std::uint64_t, const Error* error) {
      signalled(*awaited, error);
    };
    auto expectation = peer.expect(awaited->id, 1, std::move(options));
    if (!expectation) return answer(order, {{"ok", false}, {"error", expectation.error()}});
    const std::lock_guard lock(mutex_);
    awaited->handle = std::move(*expectation);
    awaited_[awaited->id] = awaited;
    return answer(order, {{"ok", true}});
  }
  answer(order, {{"ok", false}});
}

/// On a thread of the engine's. The signal says that the bytes can be seen, so they are looked at.
void Life::signalled(Awaited& awaited, const Error* error) {
  Json words = {{"what", "signal"}, {"transfer", awaited.id}, {"ok", error == nullptr}};
  if (error != nullptr) {
    words["error"] = *error;
  } else {
    const std::lock_guard lock(awaited.grant->mutex);
    for (const Stretch& each : awaited.checks) {
      if (awaited.grant->refilled) break;
      if (const auto wrong = difference(arena_.data(), each))
        violation("signal before its bytes", awaited.id, wrong->text);
    }
  }
  if (awaited.came.exchange(true))
    violation("signal twice", awaited.id, "an expectation was told of two ends");
  awaited.over_at = Clock::now();
  awaited.over = true;
  director_.say(words);
}

void Life::give_up(const Json& order) {
  const std::lock_guard lock(mutex_);
  const auto awaited = awaited_.extract(order.at("transfer").get<std::uint64_t>());
  // What is called at its end holds it, and nobody calls that any more.
  if (!awaited.empty()) awaited.mapped()->handle.reset();
}

/// Each transfer has a signal of its own: there can be no second one.
void Life::look_for_echoes() {
  std::vector<std::shared_ptr<Awaited>> due;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(awaited_, [&](const auto& each) {
      if (!each.second->over || Clock::now() < each.second->over_at + echo_time) return false;
      due.push_back(each.second);
      return true;
    });
  }
  if (due.empty()) return;
  for (const Peer& peer : engine_->peers())
    for (const auto& each : due) {
      if (each->peer != peer.name()) continue;
      auto again = peer.expect(each->id, 1);
      if (again && again->wait(Deadline::now()))
        violation("signal twice", each->id, "a second one came");
    }
}

// Transfers.

void Life::transfer(const Json& order) {
  const auto running = std::make_shared<Running>();
  running->id = order.at("transfer");
  running->expected = order.at("expected").get<std::vector<Stretch>>();
  running->wants_event = order.at("event");
  running->stalls_before = stalls_.total();
  const Deadline deadline = in_time(order);
  running->deadline = deadline.when();

  TransferOptions options;
  options.deadline = deadline;
  options.cookie = running->id;
  options.event = running->wants_event;
  if (order.at("bounce")) options.transport = TransportKind::bounce;
  if (order.at("signal")) options.signal = Signal{running->id};
  options.on_end = [this, running](const Ended& end) { ended(*running, end); };

  const auto pairs = order.at("pieces").get<std::vector<Pair>>();
  const std::lock_guard lock(mutex_);
  const auto remote = remotes_.find(order.at("grant"));
  if (remote == remotes_.end()) return answer(order, {{"ok", false}});
  const Segment& local = *segments_.at(order.at("segment").get<std::size_t>());
  // In the table before it runs, since its end may come before submit() returns.
  running_[running->id] = running;
  auto submitted = order.at("write") ? engine_->write(local, remote->second, pairs, options)
                                     : engine_->read(local, remote->second, pairs, options);
  if (!submitted) {
    running_.erase(running->id);
    if (running->ends > 0)
      violation("event of no transfer", running->id, "it was refused, and told its end");
    return answer(order, {{"ok", false}, {"error", submitted.error()}});
  }
  running->handle = std::move(*submitted);
  answer(order, {{"ok", true}});
}

void Life::cancel(const Json& order) {
  const std::lock_guard lock(mutex_);
  const auto running = running_.find(order.at("transfer"));
  if (running != running_.end()) running->second->handle->cancel();
}

/// On a thread of the engine's, at the end of a transfer.
void Life::ended(Running& running, const Ended& end) {
  const auto now = Clock::now();
  running.late = (now - running.deadline).count();
  running.end = end.state;
  if (running.ends.fetch_add(1) > 0)
    return violation("two ends", running.id, "its callback was called again");
  if (end.state == State::done)
    for (const Stretch& each : running.expected)
      if (const auto wrong = difference(arena_.data(), each))
        violation("wrong bytes", running.id, "a read that is done: " + wrong->text);
  if (end.cookie != running.id) violation("wrong cookie", running.id, std::to_string(end.cookie));
  if ((end.error == nullptr) != (end.state == State::done))
    violation("wrong error", running.id, "there is one just if it is not done");
  if (end.state == State::timed_out && now < running.deadline)
    violation("early", running.id, "it timed out before its deadline");
  Json words = {{"what", "ended"},
                {"transfer", running.id},
                {"at", now.time_since_epoch().count()},
                {"state", std::string(to_string(end.state))}};
  if (end.error != nullptr) words["error"] = *end.error;
  director_.say(words);
  running.told = true;
}

Nanoseconds Life::slack(const Running& running) const {
  // What goes on may be missing for a moment, between two ways of counting it.
  const Nanoseconds stood = stalls_.total() - running.stalls_before;
  return patience + 2 * std::max(stood, Nanoseconds::zero());
}

void Life::look_at(Running& running) {
  const bool told = running.told;  // before its state, which may change in between
  const State state = running.handle->state();
  if (told && state != running.end)
    violation("two ends", running.id, "its state changed after its end");
  const Nanoseconds late = told ? Nanoseconds(running.late) : Clock::now() - running.deadline;
  if (late > slack(running) && !std::exchange(running.told_overdue, true))
    violation("deadline", running.id,
              fmt::format("it {} {} ms after its deadline", told ? "ended" : "has not ended",
                          late / 1ms));
  if (!told || running.told_quiescent || !running.handle->quiescent()) return;
  running.told_quiescent = true;
  const Report report = running.handle->report();
  if (state == State::done && report.bytes_done != report.bytes)
    violation("bytes", running.id,
              fmt::format("{} of {} bytes of a done one", report.bytes_done, report.bytes));
  director_.say({{"what", "quiescent"},
                 {"transfer", running.id},
                 {"placed", letters_of(running.handle->placed())}});
}

/// An event that was taken out is counted under the same lock: whoever looks at the ends would miss
/// it else.
void Life::look_at_events() {
  const std::lock_guard lock(mutex_);
  std::array<Event, 64> events;
  constexpr int most_rounds = 100;  // for far more than a node has transfers
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t count = engine_->poll(events);
    for (const Event& each : std::span(events).first(count)) look_at(each);
    if (count < events.size()) return;
  }
}

void Life::look_at(const Event& event) {
  if (event.kind == Event::Kind::peer_up) return;
  if (event.kind == Event::Kind::peer_down)
    return director_.say({{"what", "lost"}, {"peer", event.peer}});
  const std::uint64_t id = event.cookie;
  auto& table = running_.contains(id) ? running_ : over_;
  const auto running = table.find(id);
  if (running == table.end() || !running->second->wants_event)
    violation("event of no transfer", id, "nobody asked for it");
  else if (++running->second->events > 1)
    violation("two ends", id, "it has put two events into the queue");
  else if (event.state != running->second->end && running->second->ends > 0)
    violation("two ends", id, "its event and its callback differ");
}

void Life::look_at_peers() {
  Json peers = Json::array();
  for (const Peer& peer : engine_->peers()) peers.push_back({peer.name(), peer.incarnation()});
  if (peers == peers_told_) return;
  peers_told_ = peers;
  director_.say({{"what", "peers"}, {"peers", std::move(peers)}});
}

void Life::watch() {
  auto next_slow = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, beat, [&] { return stopping_; })) {
    std::vector<std::shared_ptr<Running>> looked_at;
    for (const auto& [id, running] : running_)
      if (running->handle) looked_at.push_back(running);
    lock.unlock();
    stalls_.beat(beat);
    for (const auto& each : looked_at) look_at(*each);
    look_at_events();
    if (Clock::now() >= next_slow) {
      next_slow = Clock::now() + 50ms;
      look_at_peers();
      look_for_echoes();
    }
    lock.lock();
    for (const auto& each : looked_at)
      if (each->told_quiescent) {
        over_[each->id] = each;
        over_[each->id]->handle.reset();
        running_.erase(each->id);
      }
  }
}

Result<void> Life::close(Deadline deadline) {
  auto closed = engine_->close(deadline);
  tasks_.join();
  check_ends();
  // Handles first: what they stand for must not need the engine.
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  return closed;
}

/// All have ended, once; and those that wanted an event have got one.
void Life::check_ends() {
  look_at_events();
  const std::lock_guard lock(mutex_);
  for (const auto* table : {&running_, &over_})
    for (const auto& [id, each] : *table) {
      if (each->ends != 1)
        violation("no end", id, "its engine was closed, and it has not ended");
      else if (each->wants_event && each->events != 1)
        violation("no event", id, "it ended, and there was no event");
    }
}

}  // namespace weft::chaos
