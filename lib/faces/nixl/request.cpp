#include "nixl/request.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

// From the end of a transfer until nothing touches its memory any more.
constexpr auto longest_drain = std::chrono::seconds(10);

// Then what still holds memory is cut off. Until then it may come to its end by itself.
constexpr auto cut_after = std::chrono::seconds(1);
// A connection that breaks is most often that of a peer that has gone, of which the control
// connection tells at the same time.
constexpr auto news_of_peers = std::chrono::milliseconds(500);

}  // namespace

abi::Status Request::post(const Outgoing* notification) {
  const core::Lock lock(mutex_);
  if (phase_ == Phase::under_way || phase_ == Phase::draining) return abi::Status::repost_active;
  if (!quiescent()) return abi::Status::repost_active;
  error_.reset();
  told_ = false;
  phase_ = Phase::under_way;
  auto begun = begin(notification);
  if (begun) return go_on();
  give_up(std::move(begun.error()));
  told_ = true;
  const abi::Status status = refuse("a transfer was not posted", *error_);
  if (quiescent()) {  // it may be posted again at once
    withdraw();
    phase_ = Phase::ended;
    status_ = status;
  }
  return status;
}

abi::Status Request::check() {
  const core::Lock lock(mutex_);
  switch (phase_) {
    case Phase::idle:
      return abi::Status::not_posted;
    case Phase::under_way:
      return go_on();
    case Phase::draining:
      break;
    case Phase::ended:
      return status_;
  }
  return drain();
}

abi::Status Request::go_on() {
  auto done = advance();
  if (!done) {
    give_up(std::move(done.error()));
    return drain();
  }
  if (!*done) return abi::Status::in_progress;
  phase_ = Phase::ended;
  return status_ = abi::Status::success;
}

/// Until the memory is free and it is known whether the peer has gone; not for ever.
abi::Status Request::drain() {
  const auto waited = Clock::now() - failed_at_;
  if (waited >= longest_drain) return end();
  if (!quiescent()) {
    if (waited >= cut_after) cut_off();
    return abi::Status::in_progress;
  }
  return awaits_news(*error_) && waited < news_of_peers ? abi::Status::in_progress : end();
}

void Request::give_up(Error why) {
  error_ = std::move(why);
  cancel();
  phase_ = Phase::draining;
  failed_at_ = Clock::now();
}

/// Tells the error, once.
abi::Status Request::end() {
  withdraw();
  phase_ = Phase::ended;
  told_ = true;
  if (error_->code() == Code::cancelled) return status_ = abi::Status::cancelled;
  return status_ = told_as(refuse((subject() + " failed").c_str(), *error_));
}

abi::Status Request::release() {
  const core::Lock lock(mutex_);
  if (phase_ == Phase::under_way) give_up(Error(Code::cancelled, "the request was released"));
  if (quiescent()) {
    if (error_) withdraw();
    return abi::Status::success;
  }
  if (!std::exchange(told_, true)) return abi::Status::repost_active;
  if (becomes_quiescent()) return abi::Status::success;
  core::log(LogLevel::error,
            "NIXL backend: {}, which was released, can still touch its memory after {} s; "
            "deregisterMem keeps that memory from being let go",
            subject(), longest_drain.count());
  return abi::Status::backend;
}

bool Request::becomes_quiescent() {
  const auto deadline = Deadline::in(longest_drain);
  while (!deadline.passed()) {
    wait_quiescent(Deadline::in(cut_after));
    if (quiescent()) return true;
    cut_off();
  }
  return quiescent();
}

}  // namespace weft::nixl
