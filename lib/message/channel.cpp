#include "message/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "message_generated.h"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

using wire::MessageHead;

// Receives per peer beyond its credits, for messages that return credits: those need none of their
// own, and since a peer must see one before it can earn the next, two are under way at most.
constexpr std::size_t reserve = 4;

// A send buffer's number is never 0, so it tells sends from receives.
constexpr std::uint64_t receive_number = 0;

}  // namespace

std::size_t Channel::message_bytes(std::size_t payload) {
  return sizeof(MessageHead) + payload;
}

Channel::Channel(providers::Endpoint& endpoint, std::string rail_name, Limits limits,
                 OnBroken on_broken)
    : endpoint_(endpoint),
      rail_name_(std::move(rail_name)),
      limits_(limits),
      on_broken_(std::move(on_broken)),
      receives_(endpoint, message_bytes(limits.max_message)),
      sends_(endpoint, message_bytes(limits.max_message)) {}

Result<void> Channel::add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token) {
  const std::size_t wanted = limits_.credits + reserve;
  const std::size_t missing = wanted - std::min(wanted, spare_receives_);
  if (auto grown = receives_.grow(missing); !grown) return grown;
  if (auto grown = sends_.grow(missing); !grown) return grown;
  spare_receives_ -= wanted - missing;
  while (Buffer* buffer = receives_.take()) post_receive(*buffer);

  const Introduction& theirs = peer->introduction;
  // The first number is agreed by what both know: the token that the receiver gave.
  links_.try_emplace(own_token, Link{peer,
                                     peer->routes.front()->targets.front().address,
                                     own_token,
                                     static_cast<std::uint32_t>(theirs.token),
                                     theirs.message_credits,
                                     0,
                                     0,
                                     0,
                                     {static_cast<std::uint32_t>(own_token), limits_.credits},
                                     std::nullopt,
                                     false});
  return {};
}

void Channel::peer_died(PeerState& peer) {
  const Error error = peer.down_error();
  std::deque<Outgoing> unsent = peer.outbox.close();
  const auto entry = std::find_if(links_.begin(), links_.end(), [&](const auto& each) {
    return each.second.peer.get() == &peer;
  });
  if (entry != links_.end()) {
    if (entry->second.refused) unsent.push_back(std::move(*entry->second.refused));
    std::erase(attended_, entry->first);
    links_.erase(entry);
    spare_receives_ += limits_.credits + reserve;
  }
  for (auto& [number, sending] : in_flight_) {
    if (sending.peer.get() != &peer) continue;
    sending.lost = true;
    --live_;
    // The buffer stays with the fabric; only the transfer stops waiting for it.
    if (sending.transfer) std::exchange(sending.transfer, nullptr)->signal_ended(error);
  }
  for (const Outgoing& message : unsent)
    if (message.transfer) message.transfer->signal_ended(error);
}

bool Channel::sends_to(const PeerState& peer) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const auto& each) { return each.second.peer.get() == &peer; });
}

void Channel::attend(PeerState& peer) {
  for (auto& [token, link] : links_)
    if (link.peer.get() == &peer) return attend(link);
}

void Channel::attend(Link& link) {
  if (std::exchange(link.attended, true)) return;
  attended_.push_back(link.own_token);
}

std::size_t Channel::pump() {
  if (!unposted_.empty())
    for (Buffer* buffer : std::exchange(unposted_, {})) post_receive(*buffer);
  if (attended_.empty()) return 0;
  std::size_t count = 0;
  for (const std::uint64_t token : std::exchange(attended_, {})) {
    const auto link = links_.find(token);
    if (link == links_.end()) continue;
    link->second.attended = false;
    count += serve(link->second);
  }
  return count;
}

std::size_t Channel::serve(Link& link) {
  std::size_t count = 0;
  if (!return_credits(link)) {
    attend(link);
    return count;
  }
  while (link.credits > 0) {
    std::optional<Outgoing> message = std::exchange(link.refused, std::nullopt);
    if (!message) message = link.peer->outbox.pop();
    if (!message) return count;
    if (!send(link, *message)) {
      link.refused = std::move(message);
      attend(link);
      return count;
    }
    --link.credits;
    ++count;
  }
  return count;
}

bool Channel::owes_credits(const Link& link) const {
  return link.taken - link.told >= std::max<std::size_t>(1, limits_.credits / 2);
}

/// False if they have to be returned and the provider has no room.
bool Channel::return_credits(Link& link) {
  if (!owes_credits(link) || link.peer->mailbox.full()) return true;
  if (!send(link, Outgoing{MessageKind::credits, link.taken, {}, nullptr})) return false;
  link.told = link.taken;
  return true;
}

bool Channel::send(Link& link, const Outgoing& message) {
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return false;
  const MessageHead head(link.peer->introduction.token, message.tag,
                         static_cast<std::uint32_t>(message.bytes.size()), link.next_sequence,
                         static_cast<std::uint8_t>(message.kind));
  std::memcpy(buffer->data, &head, sizeof head);
  if (!message.bytes.empty())
    std::memcpy(buffer->data + sizeof head, message.bytes.data(), message.bytes.size());
  buffer->handler = this;
  buffer->number = next_number_++;
  const providers::Post post = endpoint_.send(
      *buffer, {buffer->data, sizeof head + message.bytes.size(), buffer->descriptor}, link.address,
      providers::MessageClass::message);
  if (post.status == providers::PostStatus::again) {
    sends_.put_back(*buffer);
    return false;
  }
  const bool counted = message.kind != MessageKind::credits;
  if (counted) ++link.next_sequence;
  if (post.status == providers::PostStatus::posted) {
    in_flight_.emplace(buffer->number, Sending{link.peer, message.transfer, counted});
    ++live_;
    return true;
  }
  sends_.put_back(*buffer);
  const Error error = error_of(*link.peer, post.fabric_code, {});
  if (message.transfer) message.transfer->signal_ended(error);
  on_broken_(*link.peer, error);
  return true;
}

void Channel::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& buffer = static_cast<Buffer&>(posted);
  if (buffer.number == receive_number)
    arrived(buffer, completion);
  else
    sent(buffer, completion);
}

void Channel::sent(Buffer& buffer, const providers::Completion& completion) {
  const auto entry = in_flight_.find(buffer.number);
  if (entry == in_flight_.end()) return;  // reported before
  Sending sending = std::move(entry->second);
  in_flight_.erase(entry);
  if (!sending.lost) --live_;
  if (completion.ok)
    sends_.put_back(buffer);
  else
    sends_.put_back_failed(buffer);
  if (sending.counted) sending.peer->outbox.settled();
  if (completion.ok) {
    if (sending.transfer) sending.transfer->signal_ended(std::nullopt);
    return;
  }
  const Error error = error_of(*sending.peer, completion.fabric_code, completion.text);
  if (sending.transfer) sending.transfer->signal_ended(error);
  if (sending.peer->up()) on_broken_(*sending.peer, error);
}

void Channel::arrived(Buffer& buffer, const providers::Completion& completion) {
  if (completion.ok) {
    deliver(buffer, completion.length);
  } else {
    log(LogLevel::debug, "rail {}: a receive failed: {}", rail_name_,
        providers::fabric_text(completion.fabric_code));
    return;  // not posted again: an endpoint that fails receives would do so for ever
  }
  post_receive(buffer);
}

void Channel::deliver(const Buffer& buffer, std::size_t length) {
  MessageHead head;
  if (length < sizeof head) return;
  std::memcpy(&head, buffer.data, sizeof head);
  const auto entry = links_.find(head.token());
  // Late words of a peer that is gone, or somebody who has no business here.
  if (entry == links_.end() || head.length() != length - sizeof head) return;
  Link& link = entry->second;
  const auto kind = static_cast<MessageKind>(head.kind());
  // Credits are for whoever waits, whatever was sent before them.
  if (kind == MessageKind::credits) return take_credits(link, head.tag());
  Arrived message{kind, head.tag(), Blob(buffer.data + sizeof head, buffer.data + length)};
  if (!link.arrivals.put(head.sequence(), std::move(message))) return;
  while (auto next = link.arrivals.take()) hand_on(link, std::move(*next));
}

/// `returned`: in all, so that repeats and late ones add nothing.
void Channel::take_credits(Link& link, std::uint64_t returned) {
  if (returned <= link.returned) return;
  const std::uint64_t most = link.peer->introduction.message_credits - link.credits;
  link.credits += static_cast<std::size_t>(std::min(returned - link.returned, most));
  link.returned = returned;
  attend(link);
}

void Channel::hand_on(Link& link, Arrived&& message) {
  if (message.kind == MessageKind::signal)
    link.peer->mailbox.signal_arrived(message.tag, std::move(message.bytes));
  else if (message.kind == MessageKind::tagged)
    link.peer->mailbox.message_arrived(message.tag, std::move(message.bytes));
  ++link.taken;
  if (owes_credits(link)) attend(link);
}

void Channel::post_receive(Buffer& buffer) {
  buffer.handler = this;
  buffer.number = receive_number;
  const providers::Post post =
      endpoint_.receive(buffer, {buffer.data, receives_.buffer_bytes(), buffer.descriptor},
                        providers::MessageClass::message);
  if (post.status == providers::PostStatus::again) unposted_.push_back(&buffer);
  if (post.status == providers::PostStatus::failed)
    log(LogLevel::error, "rail {}: can't post a receive: {}", rail_name_,
        providers::fabric_text(post.fabric_code));
}

Error Channel::error_of(const PeerState& peer, int fabric_code, std::string_view text) const {
  if (!peer.up()) return peer.down_error();
  return Error(Code::fabric_failed,
               fmt::format("a message can't be delivered: {}{}{}",
                           providers::fabric_text(fabric_code), text.empty() ? "" : ": ", text))
      .with_peer(peer.introduction.name)
      .with_rail(rail_name_)
      .with_operation("send")
      .with_fabric_code(fabric_code);
}

}  // namespace weft::core
