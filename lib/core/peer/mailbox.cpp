#include "peer/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

std::size_t cost(const Message& message) {
  return message.bytes.size() + kept_overhead;
}

std::string wanted_tag(const ReceiveState& receive) {
  if (receive.mask == 0) return "any tag";
  if (~receive.mask == 0) return fmt::format("the tag {}", receive.tag);
  return fmt::format("the tag {:#x} in the bits {:#x}", receive.tag & receive.mask, receive.mask);
}

bool matches(const ReceiveState& receive, const Message& message) {
  return ((receive.tag ^ message.tag) & receive.mask) == 0;
}

}  // namespace

/// Makes a change under the lock, which tells what it has ended, and tells of it without the lock.
template <typename Change>
void Mailbox::change(Change&& change) {
  Endings endings;
  bool room = false;
  {
    const Lock lock(mutex_);
    const bool was_full = bytes() > limit_;
    change(endings);
    make_room();
    room = was_full && bytes() <= limit_;
  }
  for (const auto& [slot, error] : endings) slot->complete(error);
  if (room && when_room) when_room();
}

void Mailbox::make_room() {
  while (bytes() > limit_ && signals_.shrink()) {
  }
  const std::uint64_t dropped = signals_.dropped();
  if (dropped > told_dropped_ && all_dropped_) *all_dropped_ += dropped - told_dropped_;
  told_dropped_ = dropped;
}

void Mailbox::signal_arrived(std::uint64_t id, Blob bytes) {
  change([&](Endings& endings)
             WEFT_REQUIRES(mutex_) { signals_.arrived(id, std::move(bytes), endings); });
}

void Mailbox::signal_failed(std::uint64_t id, const Error& error) {
  change([&](Endings& endings) WEFT_REQUIRES(mutex_) { signals_.failed(id, error, endings); });
}

void Mailbox::message_arrived(std::uint64_t tag, Blob bytes) {
  change([&](Endings& endings) WEFT_REQUIRES(mutex_) {
    Message message{peer_, tag, std::move(bytes)};
    const auto waiting = std::find_if(receives_.begin(), receives_.end(), [&](const auto& receive) {
      return matches(*receive, message);
    });
    if (waiting != receives_.end()) {
      (*waiting)->message = std::move(message);
      endings.emplace_back(*waiting, std::nullopt);
      receives_.erase(waiting);
    } else {
      message_bytes_ += cost(message);
      messages_.push_back(std::move(message));
    }
  });
}

void Mailbox::close(const Error& error) {
  change([&](Endings& endings) WEFT_REQUIRES(mutex_) {
    if (closed_) return;
    closed_ = error;
    signals_.close(error, endings);
    for (const auto& receive : receives_) endings.emplace_back(receive, error);
    receives_.clear();
  });
}

void Mailbox::await(const std::shared_ptr<ExpectState>& expectation) {
  change([&](Endings& endings) WEFT_REQUIRES(mutex_) { signals_.await(expectation, endings); });
}

void Mailbox::await(const std::shared_ptr<ReceiveState>& receive) {
  change([&](Endings& endings) WEFT_REQUIRES(mutex_) {
    const auto found =
        std::find_if(messages_.begin(), messages_.end(),
                     [&](const Message& message) { return matches(*receive, message); });
    if (found != messages_.end()) {
      message_bytes_ -= cost(*found);
      receive->message = std::move(*found);
      messages_.erase(found);
      endings.emplace_back(receive, std::nullopt);
    } else if (closed_) {
      endings.emplace_back(receive, closed_);
    } else {
      receives_.push_back(receive);
    }
  });
}

bool Mailbox::give_up(const ExpectState& expectation) {
  const Lock lock(mutex_);
  return signals_.give_up(expectation);
}

bool Mailbox::give_up(const ReceiveState& receive) {
  const Lock lock(mutex_);
  return std::erase_if(receives_, [&](const auto& other) { return other.get() == &receive; }) > 0;
}

void Mailbox::forget(std::uint64_t first, std::uint64_t last) {
  change([&](Endings&) WEFT_REQUIRES(mutex_) { signals_.forget(first, last); });
}

Unclaimed Mailbox::unclaimed() const {
  const Lock lock(mutex_);
  return {bytes(), signals_.ids(), bytes() > limit_};
}

Error Mailbox::overdue(const std::string& missing) const {
  std::string hindrance;
  if (bytes() > limit_)
    hindrance = fmt::format(
        "; the peer is held back, because {} bytes that no call has asked for (signals of {} ids, "
        "and messages) exceed unclaimed_bytes ({}): ask for them, or forget() the ids",
        bytes(), signals_.ids(), limit_);
  else if (const std::uint64_t vanished = signals_.vanished(); vanished > 0)
    hindrance = fmt::format(
        "; {} arrivals of ids that no call had asked for were dropped to keep within "
        "unclaimed_bytes, perhaps one of this id",
        vanished);
  return Error(Code::timed_out, missing + hindrance).with_peer(peer_);
}

Error Mailbox::overdue(const ExpectState& expectation) const {
  const Lock lock(mutex_);
  const auto& [count, payloads] = expectation.arrived;
  if (expectation.wanted == 1)
    return overdue(fmt::format("signal {} has not arrived in time", expectation.id));
  return overdue(fmt::format("{} of {} signals {} have arrived in time", count, expectation.wanted,
                             expectation.id));
}

Error Mailbox::overdue(const ReceiveState& receive) const {
  const Lock lock(mutex_);
  return overdue(fmt::format("no message with {} has arrived in time", wanted_tag(receive)));
}

bool ExpectState::give_up() {
  return peer->mailbox.give_up(*this);
}
Error ExpectState::overdue() const {
  return peer->mailbox.overdue(*this);
}

bool ReceiveState::give_up() {
  return peer->mailbox.give_up(*this);
}
Error ReceiveState::overdue() const {
  return peer->mailbox.overdue(*this);
}

}  // namespace weft::core
