#include "nixl/file_request.hpp"

#include <algorithm>
#include <tuple>

namespace weft::nixl {
namespace {

// For room in the queue of messages, which is full only if this agent does not take its
// notifications.
constexpr auto longest_send = std::chrono::seconds(1);

}  // namespace

Result<void> FileRequest::begin(const Outgoing* notification) {
  copies_.clear();
  done_ = 0;
  notification_.reset();
  if (notification != nullptr)
    if (auto kept = keep(*notification); !kept) return kept;
  for (const FileBatch& batch : batches_) {
    auto copy = batch.to->begin_copy_from(*batch.from, batch.pieces);
    if (!copy) return fail(std::move(copy.error()));
    copies_.push_back(std::move(*copy));
  }
  return {};
}

/// Until the bytes are there.
Result<void> FileRequest::keep(const Outgoing& notification) {
  auto way = loopback_.link();
  if (!way) return fail(std::move(way.error()));
  Unsent& unsent = notification_.emplace(Unsent{std::move(*way), notification.id(), {}});
  for (std::size_t i = 0; i < notification.parts(); ++i)
    unsent.parts.push_back(notification.part(i));
  return {};
}

/// Each copy that is done is looked at once.
Result<bool> FileRequest::advance() {
  for (; done_ < copies_.size(); ++done_) {
    if (!copies_[done_].ended()) return false;
    if (auto copied = copies_[done_].wait(Deadline::now()); !copied)
      return fail(std::move(copied.error()));
  }
  return notify();
}

/// False: there is no room for messages now.
Result<bool> FileRequest::notify() {
  if (!notification_) return true;
  Unsent& unsent = *notification_;
  if (!unsent.until) unsent.until = Deadline::in(longest_send);
  for (; !unsent.parts.empty(); unsent.parts.pop_front()) {
    auto sent = unsent.link->send(unsent.parts.front(), Deadline::now());
    const bool later = !sent && sent.error().code() == Code::queue_full && !unsent.until->passed();
    if (later) return false;
    if (!sent) return fail(std::move(sent.error()));
    unsent.begun = true;
  }
  notification_.reset();
  return true;
}

void FileRequest::withdraw() {
  if (notification_ && notification_->begun)
    std::ignore = notification_->link->send(withdrawal(notification_->id), Deadline::now());
  notification_.reset();
}

void FileRequest::cancel() {
  for (FileCopy& copy : copies_) copy.cancel();
}

bool FileRequest::quiescent() {
  return std::all_of(copies_.begin(), copies_.end(),
                     [](FileCopy& copy) { return copy.quiescent(); });
}

void FileRequest::wait_quiescent(Deadline deadline) {
  for (FileCopy& copy : copies_) std::ignore = copy.wait_quiescent(deadline);
}

}  // namespace weft::nixl
