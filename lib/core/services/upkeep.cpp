#include "services/upkeep.hpp"

#include <utility>

#include "base/thread.hpp"
#include "base/turns.hpp"
#include "device/file/disk.hpp"

namespace weft::core {

Result<void> Upkeep::start() {
  const SignalsBlocked blocked;
  return start_thread([this] { loop(); }).map([this](std::thread started) {
    thread_ = std::move(started);
  });
}

void Upkeep::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    stops_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Upkeep::loop() {
  take_short_turns();
  Lock lock(mutex_);
  const auto asked = [this]() WEFT_REQUIRES(mutex_) { return stopping_; };
  while (!stops_.wait(mutex_, Deadline::in(period), asked)) {
    lock.unlock();
    round(Clock::now());
    lock.lock();
  }
}

void Upkeep::round(Clock::time_point now) {
  grants_.end_expired(now);
  messages_.end_overdue(now);
  workers_.end_overdue(now);
  peers_.reap(now);
  reopening_.watch(now);
  credits_.tidy(now);
  for (const Disk* disk : Disk::all()) disk->serve_copies();
}

}  // namespace weft::core
