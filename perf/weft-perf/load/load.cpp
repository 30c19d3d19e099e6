#include "load/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace weft::perf {
namespace {

/// In which an interrupt is noticed.
constexpr auto attention = std::chrono::milliseconds(50);
/// Of all that came, what may still wait at the end of the arrivals beyond one window.
constexpr double greatest_share_left = 0.05;
/// What is due sooner is waited for without sleep.
constexpr auto spinning = std::chrono::microseconds(200);

using Time = Clock::time_point;

/// The window: which operations are under way, and since when. One that takes long holds up its own
/// place and no other.
class Window {
 public:
  Window(Operations& operations, const Work& work, Nanoseconds timeout, const std::stop_token& stop)
      : operations_(operations), timeout_(timeout), stop_(stop), flying_(work.window) {
    for (std::uint32_t i = 0; i < work.window; ++i) free_.push_back(i);
  }

  std::size_t room() const noexcept { return free_.size(); }
  bool idle() const noexcept { return free_.size() == flying_.size(); }

  /// Begins one, whose latency counts from `due`.
  Result<void> begin(Time due, Time now) {
    const std::uint32_t operation = free_.front();
    free_.pop_front();
    flying_[operation] = Flying{due, now};
    return operations_.begin(operation, {ends_, operation, now});
  }

  /// Until any may have ended, no longer than until `latest`; notes all that have.
  Result<void> wait(Time latest) {
    if (stop_.stop_requested()) return fail(Code::cancelled, "interrupted");
    // Most often the only one that is under way has ended when it was begun. But an engine that its
    // caller drives has to be asked for progress now and then.
    const auto ended = ends_->count();
    if (ended > 0 && ended == flying_.size() - free_.size() && last_end_ < next_look_) {
      just_ended_ = true;
      return note_all(last_end_);
    }
    const Time now = Clock::now();
    operations_.wait(*ends_, Deadline::at(std::min(now + attention, latest)));
    return note_all(now);
  }

  /// Now, or when the last one ended if that was just now: to read the clock takes as long as small
  /// copies, and what lies between counts against the next one.
  Time now() { return std::exchange(just_ended_, false) ? last_end_ : Clock::now(); }

  Load result(Time start) {
    load_.start = start;
    if (load_.operations > 0)
      load_.seconds = std::chrono::duration<double>(last_end_ - start).count();
    return std::move(load_);
  }
  Load& load() noexcept { return load_; }

 private:
  struct Flying {
    Time due, begun;
  };

  Result<void> note_all(Time now) {
    for (const End& end : ends_->take())
      if (auto noted = note(end); !noted) return noted;
    return now < next_look_ ? Result<void>() : look_for_overdue(now);
  }

  Result<void> note(const End& end) {
    if (auto outcome = operations_.outcome(end.operation); !outcome) return outcome;
    load_.latency.add(end.when - flying_[end.operation]->due);
    ++load_.operations;
    last_end_ = std::max(last_end_, end.when);
    flying_[end.operation].reset();
    free_.push_back(end.operation);
    return {};
  }

  Result<void> look_for_overdue(Time now) {
    next_look_ = now + attention;
    for (const auto& each : flying_)
      if (each && now > each->begun + timeout_)
        return fail(Code::timed_out, "an operation did not end in time (--timeout)");
    return {};
  }

  Operations& operations_;
  const Nanoseconds timeout_;
  const std::stop_token& stop_;
  const std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
  std::deque<std::uint32_t> free_;  // The longest free first: all take part.
  std::vector<std::optional<Flying>> flying_;
  Load load_;
  Time last_end_{}, next_look_{};
  bool just_ended_ = false;
};

/// How many more may begin.
class Quota {
 public:
  Quota(Length length, Time start)
      : end_(start + length.time), left_(length.operations == 0 ? ~0ULL : length.operations) {}
  bool over(Time now) const { return left_ == 0 || now >= end_; }
  Time end() const noexcept { return end_; }
  std::uint64_t left() const noexcept { return left_; }
  void take() noexcept { --left_; }

 private:
  const Time end_;
  std::uint64_t left_;
};

/// When operations are due.
class Arrivals {
 public:
  Arrivals(double rate, std::uint64_t seed, Time start) : random_(seed), gap_(rate), next_(start) {
    advance();
  }
  Time next() const noexcept { return next_; }
  void advance() {
    next_ += std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(gap_(random_)));
  }

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;  // in seconds
  Time next_;
};

/// Until something ends, or the next one is due.
Result<void> await(Window& window, Time next) {
  if (next - Clock::now() >= spinning) return window.wait(next - spinning);
  std::this_thread::yield();
  return window.wait(Time::min());
}

}  // namespace

Result<Load> closed_loop(Operations& operations, const Work& work, Length length,
                         Nanoseconds timeout, const std::stop_token& stop) {
  Window window(operations, work, timeout, stop);
  const Time start = Clock::now();
  Quota quota(length, start);
  for (;;) {
    while (window.room() >= work.batch) {
      Time now = window.now();
      if (quota.over(now)) break;
      for (std::uint64_t i = std::min<std::uint64_t>(work.batch, quota.left()); i > 0; --i) {
        quota.take();
        if (auto begun = window.begin(now, now); !begun) return fail(begun.error());
        if (i > 1) now = Clock::now();
      }
    }
    if (window.idle()) return window.result(start);
    if (auto waited = window.wait(Time::max()); !waited) return fail(waited.error());
  }
}

Result<Load> open_loop(Operations& operations, const Work& work, Length length, Nanoseconds timeout,
                       std::uint64_t seed, const std::stop_token& stop,
                       std::chrono::duration<double> longest_queue) {
  Window window(operations, work, timeout, stop);
  const Time start = Clock::now();
  Quota quota(length, start);
  Arrivals arrivals(work.rate, seed, start);
  std::deque<Time> waiting;
  const auto most_waiting =
      static_cast<std::size_t>(work.rate * longest_queue.count()) + work.window;
  const auto full = [&] { return waiting.size() >= most_waiting; };
  const auto more = [&] { return quota.left() > 0 && arrivals.next() < quota.end() && !full(); };
  bool arriving = more(), ended = false;
  double arrived = 0;
  while (arriving || !waiting.empty() || !window.idle()) {
    for (; arriving && arrivals.next() <= Clock::now(); arriving = more()) {
      quota.take();
      waiting.push_back(arrivals.next());
      arrivals.advance();
      arrived += 1;
    }
    // However much was served before: the arrivals have ended there.
    if (full()) window.load().overloaded = true;
    for (; window.room() > 0 && !waiting.empty(); waiting.pop_front())
      if (auto begun = window.begin(waiting.front(), Clock::now()); !begun)
        return fail(begun.error());
    // Whatever is left then has come faster than it could be served.
    if (!arriving && !ended) {
      ended = true;
      if (static_cast<double>(waiting.size()) > work.window + arrived * greatest_share_left)
        window.load().overloaded = true;
    }
    // To serve them all could take as long as anything.
    if (ended && window.load().overloaded && Clock::now() >= quota.end()) waiting.clear();
    const Time next = arriving ? arrivals.next() : Time::max();
    if (!arriving && window.idle()) continue;
    if (auto waited = await(window, next); !waited) return fail(waited.error());
  }
  return window.result(start);
}

}  // namespace weft::perf
