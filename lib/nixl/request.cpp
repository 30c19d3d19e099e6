#include "nixl/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "base/sync.hpp"
#include "nixl/polling.hpp"
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
  const core::Lock lock(mutex_);
  switch (phase_) {
    case Phase::idle:
      return abi::Status::not_posted;
    case Phase::under_way:
      return advance();
    case Phase::draining:
      break;
    case Phase::ended:
      return status_;
  }
  return drain();
}

/// Until the memory is free and it is known whether the peer has gone; not for ever.
abi::Status Request::drain() {
  const auto waited = Clock::now() - failed_at_;
  if (waited >= longest_drain) return end();
  if (!quiescent()) {
    if (waited >= cut_after) cut_off();
    return abi::Status::in_progress;
  }
  const bool may_be_gone = error_->code() == Code::fabric_failed && link_->peer().up();
  return may_be_gone && waited < news_of_peers ? abi::Status::in_progress : end();
}

/// Cuts off transfers that have ended but for operations that may still touch memory: these may
/// be on any rail to the peer. An active transfer will end first.
void Request::cut_off() {
  const bool held = std::any_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.state() != State::active && !transfer.quiescent();
  });
  if (held) link_->cutter().cut(link_->peer().rails(), failed_at_);
}

/// Each transfer that is done is looked at once.
abi::Status Request::advance() {
  // A wait makes progress, or gives its core to the threads that do.
  if (done_ < transfers_.size() && transfers_[done_].state() == State::active && polls_closely())
    std::ignore = transfers_[done_].wait(Deadline::in(longest_look));
  for (; done_ < transfers_.size(); ++done_) {
    Transfer& transfer = transfers_[done_];
    const State state = transfer.state();
    if (state == State::active) return abi::Status::in_progress;
    if (state != State::done) {
      give_up(transfer.wait(Deadline::now()).error());
      return drain();
    }
  }
  phase_ = Phase::ended;
  return status_ = abi::Status::success;
}

/// None of its transfers is worth anything without the others.
void Request::give_up(Error why) {
  error_ = std::move(why);
  for (Transfer& transfer : transfers_) transfer.cancel();
  phase_ = Phase::draining;
  failed_at_ = Clock::now();
}

bool Request::quiescent() {
  return std::all_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.state() != State::active && transfer.quiescent();
  });
}

/// The parts of a notification that have gone are of no use without the others.
void Request::withdraw() {
  const auto id = std::exchange(sent_in_parts_, std::nullopt);
  if (id && error_) std::ignore = link_->send(withdrawal(*id), Deadline::now());
}

/// Tells the error, once.
abi::Status Request::end() {
  withdraw();
  phase_ = Phase::ended;
  told_ = true;
  if (error_->code() == Code::cancelled) return status_ = abi::Status::cancelled;
  const abi::Status told =
      refuse(fmt::format("a transfer with agent {} failed", link_->agent()).c_str(), *error_);
  status_ = link_->peer().up() ? told : abi::Status::remote_disconnect;
  return status_;
}

abi::Status Request::release() {
  const core::Lock lock(mutex_);
  if (phase_ == Phase::under_way) give_up(Error(Code::cancelled, "the request was released"));
  if (quiescent()) {
    withdraw();
    return abi::Status::success;
  }
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
  const auto wait = [this](Deadline deadline) WEFT_REQUIRES(mutex_) {
    for (Transfer& transfer : transfers_) std::ignore = transfer.wait_quiescent(deadline);
    return quiescent();
  };
  const auto deadline = Deadline::in(longest_drain);
  while (!deadline.passed()) {
    if (wait(Deadline::in(cut_after))) return true;
    cut_off();
  }
  return quiescent();
}

}  // namespace weft::nixl
