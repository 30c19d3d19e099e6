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

// A NIC takes a message in far less. One that neither delivers nor fails it (efa in libfabric 1.17
// forgets what a NIC had under way that died) is not waited for any longer.
constexpr auto message_patience = std::chrono::seconds(1);

/// The message that a send buffer holds.
Blob message_in(const Buffer& buffer) {
  MessageHead head;
  std::memcpy(&head, buffer.data, sizeof head);
  return Blob(buffer.data, buffer.data + sizeof head + head.length());
}

}  // namespace

std::size_t Channel::message_bytes(std::size_t payload) {
  return sizeof(MessageHead) + payload;
}

Channel::Channel(providers::Endpoint& endpoint, std::string rail_name, Limits limits,
                 OnBroken on_broken, Tell tell, FlushArrived flush)
    : endpoint_(endpoint),
      rail_name_(std::move(rail_name)),
      limits_(limits),
      on_broken_(std::move(on_broken)),
      tell_(std::move(tell)),
      flush_(std::move(flush)),
      receives_(endpoint, message_bytes(limits.max_message)),
      sends_(endpoint, message_bytes(limits.max_message)) {}

Result<void> Channel::add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token) {
  const std::size_t wanted = limits_.credits + reserve;
  const std::size_t missing = wanted - std::min(wanted, spare_receives_);
  if (auto grown = receives_.grow(missing); !grown) return grown;
  if (auto grown = sends_.grow(missing); !grown) return grown;
  spare_receives_ -= wanted - missing;
  while (Buffer* buffer = receives_.take()) post_receive(*buffer);
  post_all(failed_);

  const Introduction& theirs = peer->introduction;
  const Capability& record = endpoint_.capability();
  // Where the only way proves that the bytes before a signal are visible, nothing may go around it.
  const bool may_go_around = record.proof == CompletionProof::visible || !peer->one_way();
  // The first number is agreed by what both know: the token that the receiver gave.
  links_.try_emplace(own_token,
                     Link{.peer = peer,
                          .route = *peer->routes.front(),
                          .own_token = own_token,
                          .may_detour = record.path_failures && may_go_around,
                          .may_go_around = may_go_around,
                          .next_sequence = static_cast<std::uint32_t>(theirs.token),
                          .credits = theirs.message_credits,
                          .arrivals = {static_cast<std::uint32_t>(own_token), limits_.credits}});
  return {};
}

void Channel::peer_died(PeerState& peer) {
  const Error error = peer.down_error();
  std::deque<Outgoing> unsent = peer.outbox.close();
  std::deque<Delivery> detoured;
  if (Link* link = link_to(peer)) {
    if (link->held) unsent.push_back(std::move(*link->held));
    detoured = link->detour.close();
    for (Buffer* buffer : link->untaken)
      if (buffer != nullptr) put_back(*buffer);
    std::erase(attended_, link->own_token);
    links_.erase(std::uint64_t{link->own_token});
    spare_receives_ += limits_.credits + reserve;
  }
  for (auto& [number, sending] : in_flight_) {
    if (sending.peer.get() != &peer || sending.written_off) continue;
    sending.written_off = true;
    --live_;
    // The buffer stays with the fabric; only the transfer stops waiting for it.
    settle(peer, std::move(sending.delivery), error);
  }
  for (Delivery& each : detoured) settle(peer, std::move(each), error);
  for (const Outgoing& message : unsent)
    if (message.transfer) message.transfer->signal_ended(error);
}

/// Tells those whom the end of a message concerns.
void Channel::settle(PeerState& peer, Delivery delivery, const std::optional<Error>& error) {
  if (delivery.counted) peer.outbox.settled();
  if (delivery.transfer) delivery.transfer->signal_ended(error);
}

bool Channel::sends_to(const PeerState& peer) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const auto& each) { return each.second.peer.get() == &peer; });
}

Channel::Link* Channel::link_to(const PeerState& peer) {
  for (auto& [token, link] : links_)
    if (link.peer.get() == &peer) return &link;
  return nullptr;
}

void Channel::attend(const PeerState& peer) {
  if (Link* link = link_to(peer)) attend(*link);
}

void Channel::attend(Link& link) {
  if (std::exchange(link.attended, true)) return;
  attended_.push_back(link.own_token);
}

std::size_t Channel::pump() {
  post_all(unposted_);
  if (endpoint_.capability().path_failures) rescue_overdue();
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
    refused(link);
    return count;
  }
  while (link.credits > 0) {
    std::optional<Outgoing> message = std::exchange(link.held, std::nullopt);
    if (!message) message = link.peer->outbox.pop();
    if (!message) return count;
    if (!send(link, *message)) {
      link.held = std::move(message);
      refused(link);
      return count;
    }
    --link.credits;
    ++count;
  }
  return count;
}

/// The provider has no room for what is to be sent: it is tried again.
void Channel::refused(Link& link) {
  if (!link.refused_since) link.refused_since = Clock::now();
  attend(link);
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

/// With its head.
void Channel::write_out(const Link& link, const Outgoing& message, std::byte* at) {
  const MessageHead head(link.peer->introduction.token, message.tag,
                         static_cast<std::uint32_t>(message.bytes.size()), link.next_sequence,
                         static_cast<std::uint8_t>(message.kind));
  std::memcpy(at, &head, sizeof head);
  if (!message.bytes.empty())
    std::memcpy(at + sizeof head, message.bytes.data(), message.bytes.size());
}

void Channel::send_around(Link& link, const Outgoing& message) {
  const bool counted = message.kind != MessageKind::credits;
  Blob bytes(message_bytes(message.bytes.size()));
  write_out(link, message, bytes.data());
  detour(link, std::move(bytes), {message.transfer, counted});
  if (counted) link.untaken.push_back(nullptr);
}

/// False if the provider has no room.
bool Channel::send(Link& link, const Outgoing& message) {
  const bool counted = message.kind != MessageKind::credits;
  if (avoids_rail(link)) {
    send_around(link, message);
  } else {
    Buffer* buffer = take_buffer();
    if (buffer == nullptr) return false;
    write_out(link, message, buffer->data);
    if (!post(link, *buffer, message)) {
      sends_.put_back(*buffer);
      return false;
    }
  }
  link.refused_since.reset();
  if (counted) ++link.next_sequence;
  count(link, message.kind);
  return true;
}

/// The tokens are known to both sides, which so agree whose thread goes.
void Channel::count(const Link& link, MessageKind kind) {
  if (kind == MessageKind::tagged && link.own_token > link.peer->introduction.token)
    ++messages_to_part_for_;
}

/// False if the provider has no room.
bool Channel::post(Link& link, Buffer& buffer, const Outgoing& message) {
  buffer.handler = this;
  buffer.number = next_number_++;
  Delivery delivery{message.transfer, message.kind != MessageKind::credits};
  const providers::Post post = endpoint_.send(
      buffer, {buffer.data, message_bytes(message.bytes.size()), buffer.registration},
      link.route.targets.front().address(), providers::MessageClass::message);
  if (post.status == providers::PostStatus::again) return false;
  if (post.status == providers::PostStatus::posted) {
    if (delivery.counted) link.untaken.push_back(&buffer);
    buffer.kept = delivery.counted;
    in_flight_.emplace(buffer.number,
                       Sending{link.peer, buffer, std::move(delivery), Clock::now()});
    ++live_;
    return true;
  }
  if (delivery.counted) link.untaken.push_back(nullptr);
  const Error error = error_of(*link.peer, post.fabric_code, {});
  if (link.may_detour) {
    set_aside(link.route, *link.peer, error);
    detour(link, message_in(buffer), std::move(delivery));
  } else {
    settle(*link.peer, std::move(delivery), error);
    on_broken_(*link.peer, error);
  }
  sends_.put_back(buffer);
  return true;
}

/// One that is free, or else is only kept: that message can't be sent again then.
Buffer* Channel::take_buffer() {
  if (Buffer* buffer = sends_.take()) return buffer;
  for (auto& [token, link] : links_)
    for (Buffer*& kept : link.untaken) {
      if (kept == nullptr || in_flight_.contains(kept->number)) continue;
      link.forgotten = true;
      Buffer* buffer = std::exchange(kept, nullptr);
      buffer->kept = false;
      return buffer;
    }
  return nullptr;
}

/// The message needs its buffer no more, once its operation has ended.
void Channel::put_back(Buffer& buffer) {
  buffer.kept = false;
  if (!in_flight_.contains(buffer.number)) sends_.put_back(buffer);
}

/// It goes another way: its buffer is its operation's alone.
void Channel::let_go(Link& link, Buffer& buffer) {
  std::replace(link.untaken.begin(), link.untaken.end(), &buffer, static_cast<Buffer*>(nullptr));
  buffer.kept = false;
}

void Channel::peer_moved(const PeerState& peer) {
  Link* link = link_to(peer);
  if (link == nullptr) return;
  // The last that it was told of may be among what was lost.
  send_around(*link, {MessageKind::credits, link->taken, {}, nullptr});
  link->told = link->taken;
  link->unsure_below = next_number_;
  if (link->untaken.empty()) return;
  if (link->forgotten || !link->may_go_around)
    return on_broken_(*link->peer, Error(Code::fabric_failed,
                                         "the peer's rail was closed, and messages may be lost"));
  for (Buffer*& buffer : link->untaken) {
    // Those that are under way follow when they have ended: see sent().
    if (buffer == nullptr || in_flight_.contains(buffer->number)) continue;
    detour(*link, message_in(*buffer), {nullptr, false});
    put_back(*std::exchange(buffer, nullptr));
  }
}

/// Whether messages go by the control connection: the rail is left alone, or those that it has
/// forgotten hold all the buffers.
bool Channel::avoids_rail(const Link& link) const {
  return link.may_detour &&
         (link.route.is_aside(Clock::now()) || (sends_.free() == 0 && in_flight_.size() > live_));
}

void Channel::detour(Link& link, Blob message, Delivery delivery) {
  link.detour.add(std::move(message), std::move(delivery));
  push_detour(link);
}

void Channel::push_detour(Link& link) {
  while (auto message = link.detour.next()) tell_(*link.peer, DetouredMessage{std::move(*message)});
}

void Channel::take_detoured(const PeerState& peer, Bytes message) {
  deliver(message, &peer);
  tell_(peer, DetourTaken{});
}

void Channel::detour_taken(const PeerState& peer) {
  Link* link = link_to(peer);
  if (link == nullptr) return;
  if (auto delivery = link->detour.arrived())
    settle(*link->peer, std::move(*delivery), std::nullopt);
  push_detour(*link);
}

/// Sends around the rail what it does not get to the peer in time. It may arrive twice then.
void Channel::rescue_overdue() {
  if (in_flight_.empty() && attended_.empty()) return;
  const auto due = Clock::now() - message_patience;
  const auto leave_rail = [&](Link& link) {
    set_aside(link.route, *link.peer,
              Error(Code::timed_out, "a message is neither delivered nor failed"));
  };
  for (auto& [number, sending] : in_flight_) {
    if (sending.since > due) break;
    if (sending.written_off) continue;
    Link* link = link_to(*sending.peer);
    if (link == nullptr || !link->may_detour) continue;
    sending.written_off = true;
    --live_;
    leave_rail(*link);
    detour(*link, message_in(sending.buffer), std::move(sending.delivery));
    let_go(*link, sending.buffer);
  }
  for (const std::uint64_t token : attended_) {
    const auto link = links_.find(token);
    if (link != links_.end() && link->second.may_detour && link->second.refused_since &&
        *link->second.refused_since <= due)
      leave_rail(link->second);
  }
}

void Channel::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& buffer = static_cast<Buffer&>(posted);
  if (buffer.number == receive_number)
    arrived(buffer, completion);
  else
    sent(buffer, completion);
}

void Channel::sent(Buffer& buffer, const providers::Completion& completion) {
  const auto entry = in_flight_.extract(buffer.number);
  Sending& sending = entry.mapped();
  if (!sending.written_off) {
    --live_;
    if (completion.ok)
      settle(*sending.peer, std::move(sending.delivery), std::nullopt);
    else
      send_failed(sending, completion);
  }
  if (Link* link = link_to(*sending.peer)) {
    const bool unsure = completion.ok && buffer.kept && buffer.number < link->unsure_below;
    if (unsure) detour(*link, message_in(buffer), {nullptr, false});
    if (unsure || !completion.ok) let_go(*link, buffer);
  }
  if (!buffer.kept) sends_.put_back(buffer);
}

void Channel::send_failed(Sending& sending, const providers::Completion& completion) {
  PeerState& peer = *sending.peer;
  const Error error = error_of(peer, completion.fabric_code, completion.text);
  Link* link = link_to(peer);
  if (link != nullptr && link->may_go_around && completion.cut)
    return detour(*link, message_in(sending.buffer), std::move(sending.delivery));
  if (link != nullptr && link->may_detour && completion.path_failed) {
    set_aside(link->route, peer, error);
    return detour(*link, message_in(sending.buffer), std::move(sending.delivery));
  }
  settle(peer, std::move(sending.delivery), error);
  if (peer.up()) on_broken_(peer, error);
}

void Channel::arrived(Buffer& buffer, const providers::Completion& completion) {
  if (completion.ok) {
    post_all(failed_);
    deliver({buffer.data, completion.length}, nullptr);
  } else {
    log(LogLevel::debug, "rail {}: a receive failed: {}", rail_name_,
        providers::fabric_text(completion.fabric_code));
    if (completion.cut) return unposted_.push_back(&buffer);
    // An endpoint that fails all receives would do so for ever, so not at once. But messages that
    // are too long are the sender's fault, who may be anybody, and must not use up the receives of
    // others.
    if (!completion.too_long) return failed_.push_back(&buffer);
  }
  post_receive(buffer);
}

/// `sender`: null where nothing but the message's token tells it.
void Channel::deliver(Bytes message, const PeerState* sender) {
  MessageHead head;
  if (message.size() < sizeof head) return;
  std::memcpy(&head, message.data(), sizeof head);
  const Bytes payload = message.subspan(sizeof head);
  const auto entry = links_.find(head.token());
  // Late words of a peer that is gone, or somebody who has no business here.
  if (entry == links_.end() || head.length() != payload.size()) return;
  Link& link = entry->second;
  if (sender != nullptr && sender != link.peer.get()) return;
  const auto kind = static_cast<MessageKind>(head.kind());
  // Credits are for whoever waits, whatever was sent before them.
  if (kind == MessageKind::credits) return take_credits(link, head.tag());
  if (!link.arrivals.put(head.sequence(), {kind, head.tag(), Blob(payload.begin(), payload.end())}))
    return;
  while (auto next = link.arrivals.take()) hand_on(link, std::move(*next));
}

/// `returned`: in all, so that repeats and late ones add nothing.
void Channel::take_credits(Link& link, std::uint64_t returned) {
  if (returned <= link.returned) return;
  const std::uint64_t most = link.peer->introduction.message_credits - link.credits;
  const auto taken = static_cast<std::size_t>(std::min(returned - link.returned, most));
  link.credits += taken;
  for (std::size_t i = 0; i < taken && !link.untaken.empty(); ++i) {
    if (Buffer* buffer = link.untaken.front()) put_back(*buffer);
    link.untaken.pop_front();
  }
  if (link.untaken.empty()) link.forgotten = false;
  link.returned = returned;
  attend(link);
}

/// What was written before the message has arrived before it, and is to be seen by whom it reaches.
void Channel::hand_on(Link& link, Arrived&& message) {
  count(link, message.kind);
  const auto visible = flush_();
  if (!visible) log(LogLevel::error, "rail {}: {}", rail_name_, visible.error().to_string());
  if (message.kind == MessageKind::signal && !visible)
    link.peer->mailbox.signal_failed(message.tag, visible.error());
  else if (message.kind == MessageKind::signal)
    link.peer->mailbox.signal_arrived(message.tag, std::move(message.bytes));
  else if (message.kind == MessageKind::tagged)
    link.peer->mailbox.message_arrived(message.tag, std::move(message.bytes));
  ++link.taken;
  if (owes_credits(link)) attend(link);
}

void Channel::post_all(std::vector<Buffer*>& receives) {
  if (receives.empty()) return;
  for (Buffer* buffer : std::exchange(receives, {})) post_receive(*buffer);
}

void Channel::post_receive(Buffer& buffer) {
  buffer.handler = this;
  buffer.number = receive_number;
  const providers::Post post =
      endpoint_.receive(buffer, {buffer.data, receives_.buffer_bytes(), buffer.registration},
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
