#include "driver/stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "driver/simulator.hpp"
#include "driver/status.hpp"

namespace weft::core::cuda {

using namespace weft::cuda_sim;

namespace {

// How often work looks for a value in memory that the CPU may write at any time.
constexpr std::chrono::microseconds glance(100);

// Longer ones go by copy engines of their own (an H200 with driver 580).
constexpr std::size_t longest_short_copy = 16 << 10;

/// Whether it goes the way that kernels go, through one of its context's queues of work.
bool needs_queue(const Work& work) {
  if (work.operation != Operation::copy || work.pageable) return false;
  return work.direction == Direction::device_to_device ||
         (work.direction == Direction::host_to_device && work.bytes <= longest_short_copy);
}

bool is_blocking(const StreamObject& stream) {
  return stream.role != Role::legacy && (stream.flags & stream_non_blocking) == 0;
}

}  // namespace

StreamObject::StreamObject(Context context, unsigned flags, Role role, std::uint64_t number)
    : context(context), flags(flags), role(role), number_(number) {}

void StreamObject::start() {
  // The program's signals are not for this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([self = shared_from_this()] { self->work(); }).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

MarkerPtr StreamObject::queue(Work work) {
  if (const Capture* const capture = simulator().captures.of(*this)) {
    require(capture->valid, capture_invalidated);
    return std::make_shared<Marker>(Marker{.captured = true});
  }
  work.number = ++simulator().last_work;
  work.marker = last = std::make_shared<Marker>();
  put_in_order(work);
  if (needs_queue(work)) work.ready = [this] { return finds_queue(); };
  record(work, Phase::queued, success);
  queue_.push_back(std::move(work));
  nudge();
  return last;
}

// The legacy default stream and the blocking streams of a context wait for each other.
void StreamObject::put_in_order(Work& work) const {
  if (role == Role::legacy) {
    for (const StreamPtr& other : simulator().streams)
      if (other->context == context && is_blocking(*other) && !other->idle())
        work.after.push_back(other->last);
  } else if (is_blocking(*this) && context->legacy && !context->legacy->idle()) {
    work.after.push_back(context->legacy->last);
  }
}

/// Of a context's queues each stream that waits for a value keeps one.
bool StreamObject::finds_queue() const {
  const auto& streams = simulator().streams;
  return std::ranges::count_if(streams, [this](const StreamPtr& each) {
           return each->context == context && each->waits_for_value();
         }) < simulator().settings.queues;
}

bool StreamObject::waits_for_value() const {
  return !queue_.empty() && queue_.front().operation == Operation::wait_value && !runnable();
}

void StreamObject::close() {
  closed_ = true;
  wake_.notify_one();
}

void StreamObject::release() {
  held_ = false;
  steps_ = 0;
  nudge();
}

void StreamObject::step(unsigned count) {
  steps_ += count;
  nudge();
}

void StreamObject::nudge() {
  if (!queue_.empty()) wake_.notify_one();
}

void StreamObject::work() {
  Simulator& s = simulator();
  Lock lock(s.mutex);
  while (next(lock)) {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    run(std::move(work), lock);
  }
  std::erase(s.streams, shared_from_this());
}

/// Sleeps until the first piece of work may run; false: there will be none.
bool StreamObject::next(Lock& lock) {
  bool delayed = false;
  while (!simulator().leaving) {
    if (queue_.empty()) {
      if (closed_) return false;
      wake_.wait(lock);
    } else if (runnable()) {
      if (std::exchange(delayed, true)) return true;
      come_late(lock);
    } else if (queue_.front().ready) {
      wake_.wait_for(lock, glance);
    } else {
      wake_.wait(lock);
    }
  }
  return false;
}

bool StreamObject::runnable() const {
  const Work& work = queue_.front();
  if (context->error != success) return true;
  if (held_ && steps_ == 0) return false;
  return std::ranges::all_of(work.after, [](const MarkerPtr& each) { return each->ended; }) &&
         (!work.ready || work.ready());
}

void StreamObject::come_late(Lock& lock) {
  Simulator& s = simulator();
  if (s.delay.microseconds == 0) return;
  // Of the seed, the stream and the place in it alone, so that a run can be had again.
  std::seed_seq place{s.delay.seed, number_, ++begun_};
  const std::chrono::microseconds late(std::mt19937(place)() % s.delay.microseconds);
  wake_.wait_until(lock, std::chrono::steady_clock::now() + late,
                   [&] { return s.leaving || context->error != success; });
}

void StreamObject::run(Work work, Lock& lock) {
  if (steps_ > 0) --steps_;
  record(work, Phase::begun, success);
  Status status = context->error;
  if (status == success) {
    // A function of the program's is no business of the device's.
    const bool on_device = work.operation != Operation::host_function;
    if (on_device) ++context->running;
    status = work.run(lock);
    if (on_device) --context->running;
    if (status != success && context->error == success) break_context(*context, status);
  }
  record(work, Phase::ended, status);
  work.marker->ended = true;
  simulator().changed();
}

void StreamObject::record(const Work& work, Phase phase, Status status) {
  const Stream handle = role == Role::created  ? this
                        : role == Role::legacy ? nullptr
                                               : stream_per_thread;
  Simulator& s = simulator();
  s.log.add({.sequence = 0,
             .work = work.number,
             .phase = phase,
             .operation = work.operation,
             .direction = work.direction,
             .stream = handle,
             .target = work.target,
             .source = work.source,
             .bytes = work.bytes,
             .pageable = work.pageable,
             .status = status});
  s.progress.notify_all();  // a test may wait for just this
}

}  // namespace weft::core::cuda

namespace weft::cuda_sim {

StreamObject& stream_of(Stream handle, Lock& lock) {
  ContextObject& context = current(lock);
  if (handle == stream_per_thread) {
    StreamPtr& own = context.per_thread[std::this_thread::get_id()];
    if (!own) own = make_stream(&context, 0, Role::per_thread);
    return *own;
  }
  if (handle == nullptr || handle == stream_legacy) {
    if (!context.legacy) context.legacy = make_stream(&context, 0, Role::legacy);
    return *context.legacy;
  }
  for (const StreamPtr& stream : simulator().streams) {
    if (stream.get() != handle || stream->role != Role::created) continue;
    require(!stream->closed() && stream->context == &context, invalid_handle);
    return *stream;
  }
  fail(invalid_handle);
}

Context context_of(Stream handle) {
  for (const StreamPtr& stream : simulator().streams)
    if (stream.get() == handle && stream->role == Role::created && !stream->closed())
      return stream->context;
  fail(invalid_handle);
}

StreamPtr make_stream(Context context, unsigned flags, Role role) {
  Simulator& s = simulator();
  auto stream = std::make_shared<StreamObject>(context, flags, role, ++s.last_stream);
  stream->start();
  if (s.hold_all && role == Role::created) stream->hold();
  s.streams.push_back(stream);
  return stream;
}

void wait_for(const MarkerPtr& marker, Lock& lock) {
  Simulator& s = simulator();
  s.progress.wait(lock, [&] { return marker->ended || s.leaving; });
  require(marker->ended, deinitialized);
}

}  // namespace weft::cuda_sim
