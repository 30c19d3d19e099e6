#include "verify/hasher.hpp"

#include <algorithm>
#include <utility>

#include "base/thread.hpp"

namespace weft::core {
namespace {

Error not_wanted() {
  return Error(Code::stale, "the hash was not wanted any more");
}

}  // namespace

Result<void> Hasher::add(Job job) {
  const Lock lock(mutex_);
  if (stopping_) return fail(Code::closed, "the engine is closed");
  if (!thread_.joinable()) {
    auto started = start_thread([this] { loop(); });
    if (!started) return fail(std::move(started.error()));
    thread_ = std::move(*started);
  }
  waiting_.push_back(std::make_unique<Work>());
  waiting_.back()->job = std::move(job);
  changed_.notify_all();
  return {};
}

bool Hasher::settle(Deadline deadline) {
  const Lock lock(mutex_);
  const std::uint64_t now = slices_;
  return changed_.wait(mutex_, deadline,
                       [&]() WEFT_REQUIRES(mutex_) { return !slicing_ || slices_ != now; });
}

void Hasher::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Hasher::loop() {
  Lock lock(mutex_);
  while (!stopping_) {
    const auto woken = [this]() WEFT_REQUIRES(mutex_) { return stopping_ || !waiting_.empty(); };
    changed_.wait(mutex_, Deadline::in(Deadline::furthest), woken);
    if (stopping_ || waiting_.empty()) continue;
    auto work = std::move(waiting_.front());
    waiting_.pop_front();
    ++slices_;
    slicing_ = true;
    lock.unlock();
    // Asked within the slice: a settle() that comes after the job is unwanted finds no slice that
    // began before.
    const Result<bool> more = work->job.wanted() ? do_slice(*work) : fail(not_wanted());
    lock.lock();
    slicing_ = false;
    changed_.notify_all();
    if (more && *more) {
      waiting_.push_back(std::move(work));
      continue;
    }
    lock.unlock();
    work->job.done(more.map([&](bool) { return work->hash.digest(); }));
    work.reset();
    lock.lock();
  }
  const Works left = std::exchange(waiting_, {});
  lock.unlock();
  for (const auto& work : left) work->job.done(fail(not_wanted()));
}

/// Whether there is more to do.
Result<bool> Hasher::do_slice(Work& work) {
  const std::vector<Range>& ranges = work.job.ranges;
  std::uint64_t left = slice;
  while (left > 0 && work.next < ranges.size()) {
    const Range& range = ranges[work.next];
    const std::uint64_t length = std::min(left, range.length - work.begun);
    const std::byte* const from = work.job.base + range.offset + work.begun;
    if (auto hashed = work.job.device->hash(work.hash, from, length); !hashed)
      return fail(std::move(hashed.error()));
    left -= length;
    work.begun += length;
    if (work.begun < range.length) break;
    ++work.next;
    work.begun = 0;
  }
  return work.next < ranges.size();
}

}  // namespace weft::core
