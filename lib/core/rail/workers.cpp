#include "rail/workers.hpp"

#include <poll.h>

#include <cerrno>
#include <map>
#include <set>

#include "base/log.hpp"
#include "base/system_error.hpp"
#include "base/thread.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

// Of the rails of one progress thread, while peers never stop sending.
constexpr auto longest_take_in = std::chrono::milliseconds(10);

}  // namespace

/// The rails of one kind go to different threads; those of different kinds share them, since a peer
/// is reached by one kind at a time. Neighbours share a thread where there are fewer of these.
Result<void> Workers::start(const Rails& rails) {
  std::map<RailKind, std::vector<Rail*>> kinds;
  std::size_t most = 0;
  for (const auto& rail : rails) {
    auto& same = kinds[rails.kind_of(*rail)];
    same.push_back(rail.get());
    most = std::max(most, same.size());
  }
  const topo::Cores cores = topo::cores();
  if (cores.usable() < cores.allowed)
    log(LogLevel::info, "{} of {} cores count, by a CPU quota of {:.2f}", cores.usable(),
        cores.allowed, *cores.quota);
  const std::size_t wanted =
      config_.threads > 0 ? config_.threads : std::min<std::size_t>(most, cores.usable());
  const std::size_t threads = std::min(wanted, rails.size());
  for (std::size_t i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(config_.spin));
    if (!workers_.back()->wakes())
      return fail(Code::unavailable,
                  "no descriptor left to wake a progress thread: " + error_text(EMFILE));
  }
  for (auto& [kind, same] : kinds) {
    std::stable_sort(same.begin(), same.end(), [&](const Rail* a, const Rail* b) {
      return rails.locality().numa_node_of(a->index()) < rails.locality().numa_node_of(b->index());
    });
    const std::size_t used = std::min(threads, same.size());
    for (std::size_t i = 0; i < same.size(); ++i) workers_[i * used / same.size()]->own(*same[i]);
  }
  last_ticks_.resize(threads);
  if (config_.progress == Progress::manual) return {};
  for (std::size_t i = 0; i < threads; ++i)
    if (auto started = workers_[i]->start(place_of(*workers_[i], i, rails)); !started)
      return started;
  return {};
}

/// At the NICs of its rails, if those that have a place are in one node. Engines that have as many
/// threads take cores for them alike, so that both ends of what two rails send each other meet.
Worker::Place Workers::place_of(const Worker& worker, std::size_t index, const Rails& rails) const {
  Worker::Place place;
  if (!config_.place_threads) return place;
  std::set<int> nodes;
  bool one_core = false;
  for (const Rail* rail : worker.rails()) {
    nodes.insert(rails.locality().numa_node_of(rail->index()));
    one_core = one_core || rail->plan().one_core;
  }
  nodes.erase(-1);
  if (nodes.size() == 1) place.numa_node = *nodes.begin();
  if (one_core && workers_.size() > 1) place.core = static_cast<unsigned>(index);
  return place;
}

void Workers::stop() {
  for (const auto& worker : workers_) worker->stop();
}

void Workers::finish(const Error& error) {
  for (const auto& worker : workers_) {
    worker->settle();
    worker->end_all(error);
  }
}

unsigned Workers::index_of(const Worker& worker) const noexcept {
  const auto found = std::find_if(workers_.begin(), workers_.end(),
                                  [&](const auto& each) { return each.get() == &worker; });
  return static_cast<unsigned>(found - workers_.begin());
}

bool Workers::all_ticked() {
  // Under manual progress it is the application that may be slow; that is not death.
  if (config_.progress == Progress::manual) return true;
  bool all = true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::uint64_t ticks = workers_[i]->ticks();
    if (ticks == last_ticks_[i]) workers_[i]->free_core();
    all = all && ticks != last_ticks_[i];
    last_ticks_[i] = ticks;
    workers_[i]->post([] {});
  }
  return all;
}

std::size_t Workers::progress(Clock::time_point now) {
  if (config_.progress == Progress::threads) return workers_.front()->drive(now);
  std::size_t done = 0;
  for (const auto& worker : workers_) done += worker->drive(now);
  return done;
}

/// Manual progress, where others compute on the caller's core: instead of looking again sleeps
/// until there is something for progress(), or for a while.
void Workers::rest() {
  // What others do with the engine meanwhile, or what comes for rails without a descriptor, is
  // looked for after this.
  constexpr timespec longest{0, 50'000};
  std::vector<pollfd> waited;
  for (const auto& worker : workers_)
    if (!worker->may_sleep(waited)) return;
  ppoll(waited.data(), waited.size(), &longest, nullptr);
}

bool Workers::run_on(Worker& worker, const std::function<void()>& task, Deadline deadline) {
  if (config_.progress == Progress::threads) return worker.run(task, deadline);
  return worker.run_here(task);
}

void Workers::hand_to(Worker& worker, const std::function<void()>& task) {
  if (config_.progress == Progress::threads) return worker.post(task);
  run_on(worker, task, Deadline::now());
}

bool Workers::take_in_arrivals(Deadline deadline) {
  return std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    const auto take_in = [&rails = worker->rails()] {
      const Deadline until = Deadline::in(longest_take_in);
      for (Rail* rail : rails) rail->endpoint().take_in_arrivals(until);
    };
    return run_on(*worker, take_in, deadline);
  });
}

void Workers::forget(const std::shared_ptr<PeerState>& peer) {
  for (const auto& worker : workers_)
    worker->post([peer, owner = worker.get()] { owner->peer_died(peer); });
}

void Workers::end_overdue(Clock::time_point now) {
  for (const auto& worker : workers_) worker->end_overdue(now);
}

void Workers::end_those_of(const PeerState& peer, const Error& why) {
  for (const auto& worker : workers_) worker->end_those_of(peer, why);
}

void Workers::end_those_under(const RemoteState& remote, const Error& why) {
  for (const auto& worker : workers_) worker->end_those_under(remote, why);
}

void Workers::end_all(const Error& error) {
  for (const auto& worker : workers_) worker->end_all(error);
}

}  // namespace weft::core
