#include "rail/worker.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/completion_slot.hpp"
#include "base/log.hpp"
#include "base/pace.hpp"
#include "base/thread.hpp"
#include "base/turns.hpp"
#include "peer/peer_state.hpp"
#include "topo/machine.hpp"

namespace weft::core {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// With operations in flight a thread goes on polling this long before it sleeps: waking up costs
// about as much as a chunk takes (64 KiB over tcp: a quarter of the throughput).
constexpr auto patience = milliseconds(1);
// Beyond this a poll of a rail that has no descriptor did something, although nothing completed
// here: over libfabric's shm it is the target that copies.
constexpr auto idle_poll = std::chrono::nanoseconds(800);
// The first poll after a sleep takes that long by itself: nothing of it lies in a cache any more.
constexpr auto cold_idle_poll = microseconds(5);

// How long a thread sleeps at most when it has nothing that wakes it: rails without a descriptor
// are looked at every so often (a stated polling budget), often at first and less when nothing has
// come for a while.
constexpr auto busy_interval = microseconds(50);
constexpr auto busy_time = milliseconds(20);
constexpr auto quiet_interval = milliseconds(1);
// With a descriptor for everything, only deadlines end a sleep, and this.
constexpr auto longest_interval = milliseconds(500);

}  // namespace

Worker::Worker(Nanoseconds spin) : spin_(spin), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Worker::~Worker() {
  stop();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void Worker::own(Rail& rail) {
  rails_.push_back(&rail);
  rail.set_worker(*this);
}

Result<void> Worker::start(Place place) {
  return start_thread([this, place] { loop(place); }).map([this](std::thread started) {
    thread_ = std::move(started);
  });
}

void Worker::free_core() {
  if (!keeps_to_core_.load(std::memory_order_acquire) || starved_.exchange(true)) return;
  pthread_setaffinity_np(thread_.native_handle(), sizeof cores_, &cores_);
}

void Worker::stop() {
  {
    const Lock lock(driving_);
    over_ = true;
  }
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

template <typename Put>
void Worker::put(Put&& put) {
  {
    const Lock lock(inbox_mutex_);
    put(inbox_);
    inbox_filled_.store(true, std::memory_order_seq_cst);
  }
  wake();
}

/// Pairs with sleep(): the thread says that it sleeps before it looks at the inbox a last time.
/// One that stands by need not be woken.
void Worker::wake() {
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  if (standing_by_.load(std::memory_order_relaxed) && driven(Clock::now())) return;
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void Worker::offer(Rail& rail, std::shared_ptr<TransferState> transfer) {
  put([&](Inbox& inbox) { inbox.offers.emplace_back(&rail, std::move(transfer)); });
}

bool Worker::begin(Rail& rail, const std::shared_ptr<TransferState>& transfer,
                   Clock::time_point now) {
  if (inbox_filled_.load(std::memory_order_acquire) || !driving_.try_lock()) return false;
  const Lock lock(driving_, std::adopt_lock);
  if (over_) return false;
  rail.begin(transfer, now);
  return true;
}

std::size_t Worker::drive(Clock::time_point now) {
  if (InCallback::now() || !driving_.try_lock()) return 0;
  const Lock lock(driving_, std::adopt_lock);
  if (over_) return 0;
  const Clock::rep time = now.time_since_epoch().count();
  const bool near = time - looked_at_.load(std::memory_order_relaxed) <= close_together.count();
  looked_at_.store(time, std::memory_order_relaxed);
  looks_in_a_row_.store(near ? looks_in_a_row_.load(std::memory_order_relaxed) + 1 : 0,
                        std::memory_order_relaxed);
  return step(now);
}

void Worker::hand_over() {
  looks_in_a_row_.store(0, std::memory_order_relaxed);
  looked_at_.store(0, std::memory_order_relaxed);
  if (standing_by_.load(std::memory_order_relaxed)) wake();
}

bool Worker::run_here(const std::function<void()>& task) {
  const Lock lock(driving_);
  if (over_) return false;
  empty_inbox();  // In order: a peer that is met again was forgotten before.
  task();
  return true;
}

void Worker::settle() {
  const Lock lock(driving_);
  empty_inbox();
}

void Worker::park(std::shared_ptr<TransferState> transfer) {
  post([this, transfer = std::move(transfer)]()
           WEFT_REQUIRES(driving_) { parked_.push_back(transfer); });
}

std::size_t Worker::look_at_parked() {
  const auto now = Clock::now();
  if (now < look_again_at_) return 0;
  // Drivers take a lock for it that launches of kernels need as well.
  look_again_at_ =
      now + std::min<Nanoseconds>(busy_interval, microseconds(static_cast<long>(parked_.size())));
  return std::erase_if(parked_, [](const auto& transfer) { return transfer->look_at_event(); });
}

void Worker::attend(Rail& rail, std::shared_ptr<PeerState> peer) {
  if (steps_here()) {
    rail.messenger().attend(*peer);
    ++attended_here_;
    return;
  }
  put([&](Inbox& inbox) { inbox.attentions.emplace_back(&rail, std::move(peer)); });
}

void Worker::post(std::function<void()> task) {
  put([&](Inbox& inbox) { inbox.tasks.push_back(std::move(task)); });
}

bool Worker::run(std::function<void()> task, Deadline deadline) {
  struct Claim : CompletionSlot {
    std::atomic<bool> taken{false};
  };
  const auto claim = std::make_shared<Claim>();
  post([claim, task = std::move(task)] {
    if (claim->taken.exchange(true)) return;
    task();
    claim->complete(std::nullopt);
  });
  if (claim->wait(deadline)) return true;
  if (!claim->taken.exchange(true)) return false;
  // It has begun: tasks are short and do not wait.
  return claim->wait(Deadline::in(std::chrono::seconds(10)));
}

std::size_t Worker::step(Clock::time_point now) {
  ticks_.store(ticks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  stepping_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  std::size_t done = 0;
  if (inbox_filled_.load(std::memory_order_acquire)) done += empty_inbox();
  for (Rail* rail : rails_) done += progress(*rail, now);
  if (!parked_.empty()) done += look_at_parked();
  end_overdue(now);
  stepping_.store({}, std::memory_order_relaxed);
  return done + std::exchange(attended_here_, 0);
}

bool Worker::has_work() const noexcept {
  return inbox_filled_.load(std::memory_order_relaxed) || !parked_.empty() ||
         std::any_of(rails_.begin(), rails_.end(),
                     [](const Rail* rail) { return rail->has_work(); });
}

std::size_t Worker::progress(Rail& rail, Clock::time_point now) {
  if (rail.resting()) return 0;
  if (rail.endpoint().wait_fd() >= 0) return rail.progress(now);
  const auto before = Clock::now();
  const std::size_t done = rail.progress(now);
  const Nanoseconds nothing = cold_ ? cold_idle_poll : idle_poll;
  return done > 0 ? done : (Clock::now() - before > nothing ? 1 : 0);
}

std::size_t Worker::empty_inbox() {
  {
    const Lock lock(inbox_mutex_);
    std::swap(inbox_, taken_);
    inbox_filled_.store(false, std::memory_order_relaxed);
  }
  const std::size_t count = taken_.offers.size() + taken_.attentions.size() + taken_.tasks.size();
  for (auto& [rail, transfer] : taken_.offers) rail->scheduler().add(std::move(transfer));
  for (auto& [rail, peer] : taken_.attentions) rail->messenger().attend(*peer);
  for (const auto& task : taken_.tasks) task();
  taken_.clear();
  return count;
}

/// Returned rather than visited: to end one calls the application, and to let go of the last handle
/// of one destroys what its callback holds. Neither may happen under the lock.
std::vector<std::shared_ptr<TransferState>> Worker::watched() const {
  std::vector<std::shared_ptr<TransferState>> all;
  const Lock lock(watched_mutex_);
  all.reserve(watched_.size());
  for (const Watched& each : watched_)
    if (auto transfer = each.transfer.lock()) all.push_back(std::move(transfer));
  return all;
}

/// Written only where it changes, as the owning thread reads it in every round.
void Worker::note_next_deadline() {
  const Clock::rep next = watched_.empty() ? never : watched_.front().deadline;
  if (next != next_deadline_.load(std::memory_order_relaxed)) next_deadline_ = next;
}

/// Forgets all that have ended, also behind others.
void Worker::sweep() {
  std::vector<std::shared_ptr<TransferState>> seen;  // until the lock is gone
  const Lock lock(watched_mutex_);
  std::erase_if(watched_, [&](const Watched& each) {
    const auto& transfer = seen.emplace_back(each.transfer.lock());
    return !transfer || transfer->ended();
  });
  std::make_heap(watched_.begin(), watched_.end(), Watched::later);
  note_next_deadline();
  sweep_at_ = std::max<std::size_t>(64, 2 * watched_.size());
}

void Worker::watch(const std::shared_ptr<TransferState>& transfer, Clock::time_point due) {
  bool full = false;
  // Where they are waited for one by one the earliest has ended most often, and no sweep is needed.
  std::array<std::shared_ptr<TransferState>, 2> ended;  // until the lock is gone
  {
    const Lock lock(watched_mutex_);
    for (auto& each : ended) {
      if (watched_.empty()) break;
      each = watched_.front().transfer.lock();
      if (each && !each->ended()) break;
      std::pop_heap(watched_.begin(), watched_.end(), Watched::later);
      watched_.pop_back();
    }
    watched_.push_back({due.time_since_epoch().count(), transfer});
    std::push_heap(watched_.begin(), watched_.end(), Watched::later);
    note_next_deadline();
    full = watched_.size() >= sweep_at_;
  }
  if (full) sweep();
}

void Worker::watch(const std::shared_ptr<TransferState>& transfer) {
  watch(transfer, transfer->due());
  // The peer may have died just now, or the grant been ended; later the transfer is found here.
  if (!transfer->peer().up()) transfer->end_early(State::failed, transfer->peer().down_error());
  RemoteState& remote = *transfer->prepared().remote;
  if (remote.users().closed()) transfer->end_with_lease(remote.ended_error());
}

/// The next overdue transfer, which is watched no more; null: there is none.
std::shared_ptr<TransferState> Worker::take_overdue(Clock::rep now) {
  const Lock lock(watched_mutex_);
  std::shared_ptr<TransferState> overdue;
  while (!overdue && !watched_.empty() && watched_.front().deadline <= now) {
    overdue = watched_.front().transfer.lock();
    std::pop_heap(watched_.begin(), watched_.end(), Watched::later);
    watched_.pop_back();
  }
  note_next_deadline();
  return overdue;
}

/// One by one: to end one calls the application, and a thread that is held up there must not keep
/// the others from upkeep.
void Worker::end_overdue(Clock::time_point now) {
  const Clock::rep time = now.time_since_epoch().count();
  while (next_deadline_ <= time) {
    const auto overdue = take_overdue(time);
    if (!overdue) return;
    if (const auto later = overdue->end_overdue(now)) watch(overdue, *later);
  }
}

void Worker::end_those_of(const PeerState& peer, const Error& why) {
  for (const auto& each : watched())
    if (&each->peer() == &peer) each->end_early(State::failed, why);
}

void Worker::end_those_under(const RemoteState& remote, const Error& why) {
  for (const auto& each : watched())
    if (each->prepared().remote.get() == &remote) each->end_with_lease(why);
}

void Worker::end_all(const Error& error) {
  for (const auto& each : watched()) each->end_early(State::failed, error);
}

void Worker::peer_died(const std::shared_ptr<PeerState>& peer) {
  for (Rail* rail : rails_) rail->peer_died(peer);
}

void Worker::loop(Place place) {
  const topo::NearNode near(place.numa_node);
  std::optional<topo::OneCore> core;
  if (place.core && pthread_getaffinity_np(pthread_self(), sizeof cores_, &cores_) == 0) {
    core.emplace(*place.core);
    keeps_to_core_.store(true, std::memory_order_release);
  }
  Clock::time_point idle_since;
  bool worked = true, cold = false;
  // A target sees no completions: that a rail woke it is all it knows of the work it does.
  bool served = false;
  Backoff backoff;
  Turns turns;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const auto now = Clock::now();
    turns.choose(now);
    if (driven(now)) {
      stand_by();
      backoff.slept(Clock::now());
      worked = true;
      continue;
    }
    if (worked) idle_since = now;
    bool in_flight = served;
    {
      const Lock lock(driving_);
      cold_ = std::exchange(cold, false);
      worked = step(now) > 0;
      cold_ = false;
      in_flight = in_flight || has_work();
    }
    // Where others compute, each core that it may have is one more that it may be given soon.
    if (core) core->keep(!backoff.crowded(now) && !starved_.load(std::memory_order_relaxed));
    if (worked) continue;
    const auto idle = now - idle_since;
    if (idle < (in_flight ? std::max<Nanoseconds>(spin_, patience) : spin_) &&
        !backoff.crowded(now)) {
      backoff(now);
      continue;
    }
    worked = served = sleep(idle_since);
    backoff.slept(Clock::now());
    cold = true;
  }
}

Nanoseconds Worker::longest_sleep(Clock::time_point idle_since) const {
  Nanoseconds longest = longest_interval;
  const auto now = Clock::now();
  if (!parked_.empty()) longest = busy_interval;
  for (Rail* rail : rails_) {
    if (rail->copying() || rail->holds_posts())
      longest = std::min<Nanoseconds>(longest, busy_interval);
    if (rail->endpoint().wait_fd() >= 0) continue;
    if (rail->peers() == 0) continue;
    const bool busy = rail->has_work() || now - idle_since < busy_time;
    longest = std::min<Nanoseconds>(longest, busy ? Nanoseconds(busy_interval) : quiet_interval);
  }
  if (const Clock::rep next = next_deadline_; next != never) {
    const Nanoseconds left = Clock::time_point(Clock::duration(next)) - now;
    longest = std::clamp<Nanoseconds>(left, Nanoseconds::zero(), longest);
  }
  return longest;
}

bool Worker::may_sleep(std::vector<pollfd>& waited) {
  if (!driving_.try_lock()) return true;  // whoever makes a step sees what comes
  const Lock lock(driving_, std::adopt_lock);
  return add_descriptors(waited);
}

bool Worker::add_descriptors(std::vector<pollfd>& waited) {
  for (Rail* rail : rails_) {
    providers::Endpoint& endpoint = rail->endpoint();
    if (endpoint.wait_fd() < 0 || rail->resting()) continue;
    if (!endpoint.may_sleep()) return false;
    waited.push_back({endpoint.wait_fd(), POLLIN, 0});
  }
  return true;
}

/// For how long, and on what. False: it may not.
bool Worker::prepare_sleep(Clock::time_point idle_since, std::vector<pollfd>& waited,
                           Nanoseconds& time) {
  const Lock lock(driving_);
  if (!add_descriptors(waited)) return false;
  time = longest_sleep(idle_since);
  return true;
}

/// Returns whether a rail ended the sleep.
bool Worker::sleep(Clock::time_point idle_since) {
  std::vector<pollfd> waited{{wake_fd_, POLLIN, 0}};
  Nanoseconds time{};
  if (!prepare_sleep(idle_since, waited, time)) return true;
  sleep_on(waited, time);
  return std::any_of(waited.begin() + 1, waited.end(),
                     [](const pollfd& each) { return each.revents != 0; });
}

/// Another thread makes the steps. It sees what is offered meanwhile, or this thread does after its
/// sleep.
void Worker::stand_by() {
  std::vector<pollfd> waited{{wake_fd_, POLLIN, 0}};
  standing_by_.store(true, std::memory_order_relaxed);
  sleep_on(waited, looks_closely() ? takeover : close_together);
  standing_by_.store(false, std::memory_order_relaxed);
}

void Worker::sleep_on(std::vector<pollfd>& waited, Nanoseconds time) {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!inbox_filled_.load(std::memory_order_seq_cst) && !stopping_.load()) {
    const auto seconds = duration_cast<std::chrono::seconds>(time);
    const timespec timeout{seconds.count(), (time - seconds).count()};
    ppoll(waited.data(), waited.size(), &timeout, nullptr);
  }
  asleep_.store(false, std::memory_order_relaxed);
  std::uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t drained = read(wake_fd_, &wakes, sizeof wakes);
}

}  // namespace weft::core
