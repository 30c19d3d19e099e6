#include "nixl/transfer_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace weft::nixl {

Result<std::shared_ptr<TransferRequest>> TransferRequest::make(LinkPtr link, Direction direction,
                                                               std::vector<TransferBatch> batches) {
  const bool known = std::all_of(batches.begin(), batches.end(),
                                 [](const TransferBatch& batch) { return batch.remote->ended(); });
  std::shared_ptr<TransferRequest> request(
      new TransferRequest(std::move(link), direction, std::move(batches)));
  const core::Lock lock(request->mutex_);
  if (known)
    if (auto prepared = request->prepare(); !prepared) return fail(std::move(prepared.error()));
  return request;
}

/// Once all imports have ended.
Result<void> TransferRequest::prepare() {
  for (const TransferBatch& batch : batches_) {
    const auto remote = batch.remote->remote();
    if (!remote) return fail(remote.error());
    link_->explain(*batch.local, *remote, direction_);
    auto list = link_->engine().prepare(*batch.local, *remote, direction_, batch.pieces);
    if (!list) return fail(std::move(list.error()));
    prepared_.push_back(std::move(*list));
  }
  batches_.clear();
  return {};
}

Result<void> TransferRequest::begin(const Outgoing* notification) {
  transfers_.clear();
  done_ = 0;
  sent_in_parts_.reset();
  not_begun_.reset();
  deadline_ = Deadline::in(link_->timeout());
  const bool fits = notification == nullptr || notification->parts_ahead() == 0;
  if (batches_.empty() && fits) return submit_all(notification);
  std::optional<Outgoing> kept;
  if (notification != nullptr) kept = *notification;
  auto begun = link_->later([self = shared_from_this(), this, post = post_ + 1, kept,
                             deadline = deadline_] { begin_later(post, kept, deadline); });
  waits_ = begun.has_value();
  ++post_;
  return begun;
}

/// By the link's thread, unless the request has been cancelled or posted again meanwhile.
void TransferRequest::begin_later(std::uint64_t post, const std::optional<Outgoing>& notification,
                                  Deadline deadline) {
  if (!is_ready(post, notification)) return;
  auto begun = notification ? send_first_parts(*notification, deadline) : Result<void>();
  const core::Lock lock(mutex_);
  if (!waits(post)) {
    // The parts went after it was withdrawn.
    if (notification) std::ignore = link_->send(withdrawal(notification->id()), Deadline::now());
    return;
  }
  if (begun) begun = submit_all(notification ? &*notification : nullptr);
  if (!begun) not_begun_ = std::move(begun.error());
  waits_ = false;
}

/// False: there is nothing more to do.
bool TransferRequest::is_ready(std::uint64_t post, const std::optional<Outgoing>& notification) {
  const core::Lock lock(mutex_);
  if (!waits(post)) return false;
  if (auto prepared = prepare(); !prepared) {
    not_begun_ = std::move(prepared.error());
    waits_ = false;
    prepared_.clear();
    return false;
  }
  if (notification && notification->parts() > 1) sent_in_parts_ = notification->id();
  return true;
}

/// Those that no transfer carries.
Result<void> TransferRequest::send_first_parts(const Outgoing& notification, Deadline deadline) {
  for (std::size_t i = 0; i < notification.parts_ahead(); ++i)
    if (auto sent = link_->send(notification.part(i), deadline); !sent) return sent;
  return {};
}

Result<void> TransferRequest::submit_all(const Outgoing* notification) {
  if (notification != nullptr && notification->parts() > 1) sent_in_parts_ = notification->id();
  transfers_.reserve(prepared_.size());
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    TransferOptions options;
    options.deadline = deadline_;
    Blob part;
    if (notification != nullptr) {
      part = notification->part(notification->parts_ahead() + i);
      options.signal = Signal{notification_signal, part};
    }
    auto transfer = link_->engine().submit(prepared_[i], std::move(options));
    if (!transfer) return fail(std::move(transfer.error()));
    transfers_.push_back(std::move(*transfer));
  }
  return {};
}

/// Each transfer that is done is looked at once.
Result<bool> TransferRequest::advance() {
  if (not_begun_) return fail(*not_begun_);
  if (waits_ && !deadline_.passed()) return false;
  if (waits_)
    return fail(Code::timed_out,
                fmt::format("agent '{}' has not answered in time", link_->agent()));
  // A wait that is over at once makes progress.
  if (done_ < transfers_.size() && transfers_[done_].state() == State::active)
    std::ignore = transfers_[done_].wait(Deadline::now());
  for (; done_ < transfers_.size(); ++done_) {
    Transfer& transfer = transfers_[done_];
    const State state = transfer.state();
    if (state == State::active) return false;
    if (state != State::done) return fail(transfer.wait(Deadline::now()).error());
  }
  return true;
}

void TransferRequest::cancel() {
  waits_ = false;
  for (Transfer& transfer : transfers_) transfer.cancel();
}

bool TransferRequest::quiescent() {
  return std::all_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.state() != State::active && transfer.quiescent();
  });
}

void TransferRequest::wait_quiescent(Deadline deadline) {
  for (Transfer& transfer : transfers_) std::ignore = transfer.wait_quiescent(deadline);
}

/// Cuts off transfers that have ended but for operations that may still touch memory: these may
/// be on any rail to the peer. An active transfer will end first.
void TransferRequest::cut_off() {
  const bool held = std::any_of(transfers_.begin(), transfers_.end(), [](const Transfer& transfer) {
    return transfer.state() != State::active && !transfer.quiescent();
  });
  if (held) link_->cutter().cut(link_->peer()->rails(), failed_at());
}

bool TransferRequest::awaits_news(const Error& error) {
  return error.code() == Code::fabric_failed && link_->up();
}

abi::Status TransferRequest::told_as(abi::Status logged) {
  const bool gone = link_->peer() != nullptr && !link_->up();
  return gone ? abi::Status::remote_disconnect : logged;
}

void TransferRequest::withdraw() {
  const auto id = std::exchange(sent_in_parts_, std::nullopt);
  if (id) std::ignore = link_->send(withdrawal(*id), Deadline::now());
}

std::string TransferRequest::subject() const {
  return "a transfer with agent " + link_->agent();
}

}  // namespace weft::nixl
