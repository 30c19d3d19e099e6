#include "nixl/transfer_request.hpp"

#include <algorithm>
#include <tuple>

#include "nixl/polling.hpp"

namespace weft::nixl {

Result<void> TransferRequest::begin(const Outgoing* notification) {
  transfers_.clear();
  done_ = 0;
  sent_in_parts_.reset();
  if (notification != nullptr)
    if (auto sent = send_first_parts(*notification); !sent) return sent;
  return submit_all(notification);
}

/// Those that no transfer carries.
Result<void> TransferRequest::send_first_parts(const Outgoing& notification) {
  if (notification.parts() > 1) sent_in_parts_ = notification.id();
  for (std::size_t i = 0; i + batches_.size() < notification.parts(); ++i) {
    auto sent = link_->send(notification.part(i), Deadline::in(longest_send));
    if (!sent) return sent;
  }
  return {};
}

Result<void> TransferRequest::submit_all(const Outgoing* notification) {
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

/// Each transfer that is done is looked at once.
Result<bool> TransferRequest::advance() {
  // A wait makes progress, or gives its core to the threads that do.
  if (done_ < transfers_.size() && transfers_[done_].state() == State::active && polls_closely())
    std::ignore = transfers_[done_].wait(Deadline::in(longest_look));
  for (; done_ < transfers_.size(); ++done_) {
    Transfer& transfer = transfers_[done_];
    const State state = transfer.state();
    if (state == State::active) return false;
    if (state != State::done) return fail(transfer.wait(Deadline::now()).error());
  }
  return true;
}

void TransferRequest::cancel() {
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
  if (held) link_->cutter().cut(link_->peer().rails(), failed_at());
}

bool TransferRequest::awaits_news(const Error& error) {
  return error.code() == Code::fabric_failed && link_->peer().up();
}

abi::Status TransferRequest::told_as(abi::Status logged) {
  return link_->peer().up() ? logged : abi::Status::remote_disconnect;
}

void TransferRequest::withdraw() {
  const auto id = std::exchange(sent_in_parts_, std::nullopt);
  if (id) std::ignore = link_->send(withdrawal(*id), Deadline::now());
}

std::string TransferRequest::subject() const {
  return "a transfer with agent " + link_->agent();
}

}  // namespace weft::nixl
