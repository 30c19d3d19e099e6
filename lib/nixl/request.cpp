#include "nixl/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "nixl/status.hpp"

namespace weft::nixl {
namespace {

// From the end of a transfer until nothing touches its memory any more: a peer that has stopped is
// found dead (Config::death_after, 2 s) and cut off meanwhile.
constexpr auto longest_drain = std::chrono::seconds(10);

// A caller that has looked so often in a row, with no more than this between two looks, does
// nothing else. A server that looks once in each step of its scheduler is not kept waiting.
constexpr unsigned looks_in_a_row = 8;
constexpr auto between_looks = std::chrono::microseconds(20);
// The caller may have others to look at.
constexpr auto longest_wait = std::chrono::microseconds(50);

bool polls_closely() {
  thread_local Clock::time_point looked_at;
  thread_local unsigned in_a_row = 0;
  const auto now = Clock::now();
  const bool close = now - std::exchange(looked_at, now) <= between_looks + longest_wait;
  in_a_row = close ? in_a_row + 1 : 0;
  return in_a_row >= looks_in_a_row;
}

}  // namespace

abi::Status Request::post(const Outgoing* notification) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::under_way || phase_ == Phase::draining) return abi::Status::repost_active;
  if (!quiescent()) return abi::Status::repost_active;
  transfers_.clear();
  done_ = 0;
  error_.reset();
  sent_in_parts_.reset();
  told_ = false;
  phase_ = Phase::under_way;
  return begin(notification);
}

abi::Status Request::begin(const Outgoing* notification) {
  auto begun = notification != nullptr ? send_first_parts(*notification) : Result<void>();
  if (begun) begun = submit_all(notification);
  if (begun) return advance();
  give_up(std::move(begun.error()));
  told_ = true;
  return refuse("a transfer was not posted", *error_);
}

/// Those that no transfer carries.
Result<void> Request::send_first_parts(const Outgoing& notification) {
  if (notification.parts() > 1) sent_in_parts_ = notification.id();
  for (std::size_t i = 0; i + batches_.size() < notification.parts(); ++i) {
    auto sent = link_->send(notification.part(i), Deadline::in(longest_send));
    if (!sent) return sent;
  }
  return {};
}

Result<void> Request::submit_all(const Outgoing* notification) {
  transfers_.reserve(batches_.size());
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    TransferOptions options;
    Blob part;
    if (notification != nullptr) {
      part = notification->part(notification->parts() - batches_.size() + i);
      options.signal = Signal{notification_signal, part};
    }
    auto transfer = link_->engine().submit(batches_[i], std::move(options));
    if (!transfer) return fail(std::move(transfer.error()));
    transfers_.push_back(std::move(*transfer));
  }
  return {};
}

abi::Status Request::check() {
  const std::lock_guard lock(mutex_);
  switch (phase_) {
    case Phase::idle:
      return abi::Status::not_posted;
    case Phase::under_way:
      return advance();
    case Phase::draining:
      break;
    case Phase::ended:
      return error_ ? status_of(error_->code()) : abi::Status::success;
  }
  if (!quiescent() && Clock::now() < drained_by_) return abi::Status::in_progress;
  return end();
}

/// Each transfer that is done is looked at once.
abi::Status Request::advance() {
  // A wait makes progress, or gives its core to those who do.
  if (done_ < transfers_.size() && transfers_[done_].state() == State::active && polls_closely())
    std::ignore = transfers_[done_].wait(Deadline::in(longest_wait));
  for (; done_ < transfers_.size(); ++done_) {
    Transfer& transfer = transfers_[done_];
    const State state = transfer.state();
    if (state == State::active) return abi::Status::in_progress;
    if (state != State::done) {
      give_up(transfer.wait(Deadline::now()).error());
      return quiescent() ? end() : abi::Status::in_progress;
    }
  }
  phase_ = Phase::ended;
  return abi::Status::success;
}

/// None of its transfers is worth anything without the others.
void Request::give_up(Error why) {
  error_ = std::move(why);
  for (Transfer& transfer : transfers_) transfer.cancel();
  phase_ = Phase::draining;
  drained_by_ = Clock::now() + longest_drain;
}

bool Request::quiescent() {
  return std::all_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.state() != State::active && transfer.quiescent();
  });
}

/// Tells the error, once. The parts of the notification that have gone are no use to anybody.
abi::Status Request::end() {
  if (sent_in_parts_) std::ignore = link_->send(withdrawal(*sent_in_parts_), Deadline::now());
  phase_ = Phase::ended;
  told_ = true;
  if (error_->code() == Code::cancelled) return abi::Status::cancelled;
  return refuse(fmt::format("a transfer with agent {} failed", link_->agent()).c_str(), *error_);
}

abi::Status Request::release() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::under_way) give_up(Error(Code::cancelled, "the request was released"));
  if (quiescent()) return abi::Status::success;
  if (!std::exchange(told_, true)) return abi::Status::repost_active;
  if (wait_quiescent()) return abi::Status::success;
  core::log(
      LogLevel::error,
      "NIXL backend: a released transfer with agent {} can still touch its memory after {} s; "
      "deregisterMem keeps that memory from being let go",
      link_->agent(), longest_drain.count());
  return abi::Status::backend;
}

bool Request::wait_quiescent() {
  const auto deadline = Deadline::in(longest_drain);
  for (Transfer& transfer : transfers_) std::ignore = transfer.wait_quiescent(deadline);
  return quiescent();
}

}  // namespace weft::nixl
