#include "message/messenger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.hpp"
#include "message_generated.h"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

using wire::MessageHead;
using Phase = Unacknowledged::Phase;

// Receives per peer beyond its credits, for messages that return credits: those need none of their
// own, and since a peer must see one before it can earn the next, two are under way at most.
constexpr std::size_t reserve = 4;

// Buffers that are allocated at a time, at least, and that stay. A guess.
constexpr std::size_t few_buffers = 16;

// A NIC takes a message in far less. Messages that it neither delivers nor fails (efa in libfabric
// 1.17 forgets what a NIC had under way that died) are not waited for any longer.
constexpr auto message_patience = std::chrono::seconds(1);

bool is_numbered(MessageKind kind) {
  return kind != MessageKind::credits;
}

/// The message that a send buffer holds.
Blob message_in(const Buffer& buffer) {
  MessageHead head;
  std::memcpy(&head, buffer.data, sizeof head);
  return Blob(buffer.data, buffer.data + sizeof head + head.length());
}

}  // namespace

std::size_t Messenger::message_bytes(std::size_t payload) {
  return sizeof(MessageHead) + payload;
}

/// Payload bytes of the packets that go there.
std::size_t Messenger::most_bytes(const Route& route) const {
  return std::min(packet_bytes(), route.packet) - sizeof(MessageHead);
}

Messenger::Messenger(providers::Endpoint& endpoint, std::string rail_name, Limits limits,
                     OnBroken on_broken, Tell tell, FlushArrived flush)
    : endpoint_(endpoint),
      rail_name_(std::move(rail_name)),
      limits_(limits),
      on_broken_(std::move(on_broken)),
      tell_(std::move(tell)),
      flush_(std::move(flush)),
      receives_(endpoint, "rail " + rail_name_, providers::MessageClass::message,
                std::min(message_bytes(limits.max_message), limits.packet), few_buffers,
                limits.receives, *this),
      sends_(endpoint, packet_bytes(), few_buffers) {}

Result<void> Messenger::add_peer(const std::shared_ptr<PeerState>& peer, std::uint64_t own_token) {
  const std::size_t first = std::min(limits_.credits, limits_.first_credits);
  if (auto promised = receives_.promise(first + reserve); !promised) return promised;
  const Introduction& theirs = peer->introduction;
  const Capability& record = endpoint_.capability();
  // Where only this rail proves that the bytes before a signal are visible, no signal may go by the
  // control connection.
  const bool may_leave = record.proof == CompletionProof::visible || !peer->one_way();
  // Both sides know the first number: it is the token that the receiver gave.
  streams_.try_emplace(own_token,
                       Stream{.peer = peer,
                              .route = *peer->routes.front(),
                              .own_token = own_token,
                              .leaves_failed_rail = record.path_failures && may_leave,
                              .may_leave_rail = may_leave,
                              .first_sequence = static_cast<std::uint32_t>(theirs.token),
                              .most_bytes = most_bytes(*peer->routes.front()),
                              .window = SendWindow(theirs.message_credits),
                              .arrivals = {static_cast<std::uint32_t>(own_token), limits_.credits},
                              .assembly = Assembly(limits_.max_message),
                              .promised = first});
  return {};
}

void Messenger::peer_died(PeerState& peer) {
  const Error error = peer.down_error();
  std::deque<Outgoing> unsent = peer.outbox.close();
  std::optional<SendWindow> window;
  if (Stream* stream = stream_to(peer)) {
    for (auto& [post, sent] : in_flight_)
      if (sent.own_token == stream->own_token && !std::exchange(sent.abandoned, true)) --live_;
    if (stream->held) unsent.push_back(std::move(stream->held->message));
    window.emplace(std::move(stream->window));
    std::erase(attended_, stream->own_token);
    receives_.release(stream->promised + reserve);
    streams_.erase(std::uint64_t{stream->own_token});
  }
  if (window)
    for (Unacknowledged& message : *window) {
      // The rail keeps those that are under way; only their transfers stop waiting for them.
      if (message.phase == Phase::delivered) sends_.put_back(*message.buffer);
      end(peer, message, error);
    }
  for (const Outgoing& message : unsent)
    if (message.transfer) message.transfer->signal_ended(error);
}

/// Tells the sender how the message ended: once.
void Messenger::end(PeerState& peer, Unacknowledged& message, const std::optional<Error>& error) {
  if (std::exchange(message.ended, true)) return;
  peer.outbox.settled();
  if (const auto transfer = std::move(message.transfer)) transfer->signal_ended(error);
}

bool Messenger::sends_to(const PeerState& peer) const {
  return std::any_of(in_flight_.begin(), in_flight_.end(),
                     [&](const auto& each) { return each.second.peer == &peer; });
}

/// Null if the peer is gone.
Messenger::Stream* Messenger::stream_of(std::uint64_t own_token) {
  const auto entry = streams_.find(own_token);
  return entry == streams_.end() ? nullptr : &entry->second;
}

Messenger::Stream* Messenger::stream_to(const PeerState& peer) {
  for (auto& [token, stream] : streams_)
    if (stream.peer.get() == &peer) return &stream;
  return nullptr;
}

void Messenger::attend(const PeerState& peer) {
  if (Stream* stream = stream_to(peer)) attend(*stream);
}

void Messenger::attend(Stream& stream) {
  if (std::exchange(stream.attended, true)) return;
  attended_.push_back(stream.own_token);
}

std::size_t Messenger::pump() {
  receives_.progress();
  if (endpoint_.capability().path_failures && !in_flight_.empty()) rescue_overdue();
  if (!failed_.empty()) tell_failed();
  if (attended_.empty()) return 0;
  std::size_t count = 0;
  std::swap(attended_, serving_);  // whom this round attends has its turn in the next
  for (const std::uint64_t token : serving_) {
    Stream* const stream = stream_of(token);
    if (stream == nullptr) continue;
    stream->attended = false;
    count += serve(*stream);
  }
  serving_.clear();
  return count;
}

std::size_t Messenger::serve(Stream& stream) {
  std::size_t count = 0;
  if (!acknowledge(stream)) {
    refused(stream);
    return count;
  }
  while (!stream.window.full()) {
    if (!stream.held) {
      std::optional<Outgoing> message = stream.peer->outbox.pop();
      if (!message) return count;
      stream.held = Held{std::move(*message)};
    }
    if (!send_next(stream)) {
      refused(stream);
      return count;
    }
    ++count;
  }
  return count;
}

/// Of the message that is being sent. False if the provider has no room.
bool Messenger::send_next(Stream& stream) {
  Held& held = *stream.held;
  const Outgoing& message = held.message;
  const Bytes left = Bytes(message.bytes).subspan(held.sent);
  if (left.size() <= stream.most_bytes) {
    if (!send(stream, {message.kind, message.tag, left, message.transfer, held.fragments}))
      return false;
    stream.held.reset();
    return true;
  }
  const Bytes piece = left.first(stream.most_bytes);
  if (!send(stream, {MessageKind::fragment, message.tag, piece, nullptr, held.fragments}))
    return false;
  held.sent += piece.size();
  ++held.fragments;
  return true;
}

/// The provider has no room for the next packet: it is tried again, and goes by the control
/// connection in the end. A port that a firewall blocks takes nothing, and tells nothing.
void Messenger::refused(Stream& stream) {
  const auto now = Clock::now();
  if (!stream.refused_since) stream.refused_since = now;
  if (stream.may_leave_rail && now - *stream.refused_since >= message_patience)
    set_aside(stream.route, *stream.peer,
              Error(Code::timed_out, "it has had no room for a message"));
  attend(stream);
}

bool Messenger::owes_credits(const Stream& stream) const {
  return stream.taken - stream.returned >= std::max<std::size_t>(1, stream.promised / 2);
}

Messenger::Packet Messenger::acknowledgement(const Stream& stream) {
  return {.kind = MessageKind::credits,
          .tag = stream.taken,
          .credits = stream.returned + stream.promised + stream.given_back};
}

/// Of the credits that a peer may have, but for receives that are kept for peers that come. Returns
/// how many more it has.
std::size_t Messenger::promise_the_rest(Stream& stream) {
  const std::size_t kept = receives_.most() / 4;
  const std::size_t more = std::min(limits_.credits - stream.promised,
                                    receives_.left() - std::min(receives_.left(), kept));
  if (more == 0 || !receives_.promise(more)) return 0;
  stream.promised += more;
  return more;
}

void Messenger::credits_given_back(const PeerState& peer, std::uint64_t count) {
  Stream* const stream = stream_to(peer);
  // No more than it can have.
  if (stream == nullptr || count >= stream->promised) return;
  stream->promised -= count;
  stream->given_back += count;
  receives_.release(count);
  // What is few for many credits may be half of what is left.
  if (owes_credits(*stream)) attend(*stream);
}

/// Returns the credits of what was taken, with more if there are any. A peer that is held back only
/// gets more. False if something has to be sent and the provider has no room.
bool Messenger::acknowledge(Stream& stream) {
  if (!owes_credits(stream)) return true;
  const bool held_back = stream.peer->mailbox.full();
  const std::size_t more = promise_the_rest(stream);
  if (held_back && more == 0) return true;
  const std::uint64_t before = stream.returned;
  if (!held_back) stream.returned = stream.taken;
  if (send(stream, acknowledgement(stream))) return true;
  stream.returned = before;
  stream.promised -= more;
  receives_.release(more);
  return false;
}

/// With its head.
void Messenger::write_out(const Stream& stream, const Packet& packet, std::byte* at) {
  const auto sequence = stream.first_sequence + static_cast<std::uint32_t>(stream.window.next());
  const TransferState* const transfer = packet.transfer.get();
  const bool reads = transfer != nullptr && transfer->prepared().direction == Direction::read;
  const MessageHead head(stream.peer->introduction.token, packet.tag,
                         static_cast<std::uint32_t>(packet.bytes.size()), sequence,
                         static_cast<std::uint8_t>(packet.kind), reads,
                         transfer != nullptr ? transfer->submission().bytes : packet.credits);
  std::memcpy(at, &head, sizeof head);
  if (!packet.bytes.empty())
    std::memcpy(at + sizeof head, packet.bytes.data(), packet.bytes.size());
}

/// The packet is on its way: its number, if it has one.
MessageNumber Messenger::enter(Stream& stream, Packet& packet, Phase phase, Buffer* buffer) {
  if (!is_numbered(packet.kind)) return std::nullopt;
  stream.rests = false;
  if (packet.kind == MessageKind::fragment) stream.peer->outbox.add_under_way();
  const std::uint64_t number = stream.window.next();
  stream.window.push({phase, buffer, std::move(packet.transfer), packet.before});
  return number;
}

/// False if the provider has no room.
bool Messenger::send(Stream& stream, Packet packet) {
  if (avoids_rail(stream)) {
    send_by_control(stream, packet);
  } else {
    Buffer* buffer = take_buffer();
    if (buffer == nullptr) return false;
    write_out(stream, packet, buffer->data);
    if (!post(stream, *buffer, packet)) {
      sends_.put_back(*buffer);
      return false;
    }
  }
  stream.refused_since.reset();
  return true;
}

/// False if the provider has no room.
bool Messenger::post(Stream& stream, Buffer& buffer, Packet& packet) {
  buffer.handler = this;
  buffer.number = next_post_++;
  const providers::Post post =
      endpoint_.send(buffer, {buffer.data, message_bytes(packet.bytes.size()), buffer.registration},
                     stream.route.targets.front().address(), providers::MessageClass::message);
  if (post.status == providers::PostStatus::again) return false;
  const InFlight sent{stream.peer.get(), stream.own_token,
                      enter(stream, packet, Phase::on_rail, &buffer), buffer, Clock::now()};
  if (post.status == providers::PostStatus::posted) {
    in_flight_.emplace(buffer.number, sent);
    ++live_;
    return true;
  }
  providers::Completion refused;
  refused.ok = false;
  refused.path_failed = true;
  refused.fabric_code = post.fabric_code;
  failed(stream, sent, refused);
  sends_.put_back(buffer);
  return true;
}

/// Buffers for all that may be under way, and returns of credits.
std::size_t Messenger::most_sends() const {
  return streams_.size() * (limits_.credits + reserve);
}

/// One that is free, or new. Else that of a message that was delivered, which can't be sent again
/// then.
Buffer* Messenger::take_buffer() {
  if (Buffer* buffer = sends_.take_or_grow(most_sends())) return buffer;
  for (auto& [token, stream] : streams_)
    for (Unacknowledged& message : stream.window) {
      if (message.phase != Phase::delivered) continue;
      message.phase = Phase::forgotten;
      return std::exchange(message.buffer, nullptr);
    }
  return nullptr;
}

void Messenger::peer_moved(const PeerState& peer) {
  Stream* const stream = stream_to(peer);
  if (stream == nullptr) return;
  // The last acknowledgement may be among what was lost.
  Packet credits = acknowledgement(*stream);
  send_by_control(*stream, credits);
  const bool forgotten =
      std::any_of(stream->window.begin(), stream->window.end(),
                  [](const Unacknowledged& each) { return each.phase == Phase::forgotten; });
  if (forgotten || (!stream->window.empty() && !stream->may_leave_rail))
    return on_broken_(*stream->peer, Error(Code::fabric_failed,
                                           "the peer's rail was closed, and messages may be lost"));
  std::uint64_t number = stream->window.first();
  for (Unacknowledged& message : stream->window) {
    if (message.phase == Phase::on_rail) {
      message.phase = Phase::on_closed_rail;  // it follows when its post has ended
    } else if (message.phase == Phase::delivered) {
      Buffer& buffer = *message.buffer;
      resend_by_control(*stream, number, buffer);
      sends_.put_back(buffer);
    }
    ++number;
  }
}

/// Whether messages go by the control connection: the rail was set aside, or messages that it has
/// forgotten hold all the buffers.
bool Messenger::avoids_rail(const Stream& stream) const {
  if (stream.may_leave_rail && stream.route.is_aside(Clock::now())) return true;
  return stream.leaves_failed_rail && sends_.free() == 0 && sends_.size() >= most_sends() &&
         in_flight_.size() > live_;
}

void Messenger::send_by_control(Stream& stream, Packet& packet) {
  Blob bytes(message_bytes(packet.bytes.size()));
  write_out(stream, packet, bytes.data());
  stream.control.add(enter(stream, packet, Phase::on_control, nullptr), std::move(bytes));
  push_control(stream);
}

/// What the rail may have lost. The caller lets go of the buffer.
void Messenger::resend_by_control(Stream& stream, MessageNumber number, const Buffer& buffer) {
  if (number) {
    Unacknowledged* const message = stream.window.find(*number);
    if (message == nullptr) return;  // it arrived
    message->phase = Phase::on_control;
    message->buffer = nullptr;
  }
  stream.control.add(number, message_in(buffer));
  push_control(stream);
}

void Messenger::push_control(Stream& stream) {
  while (auto message = stream.control.next())
    tell_(*stream.peer, FallbackMessage{std::move(*message)});
}

void Messenger::arrived_by_control(const PeerState& peer, Bytes message) {
  deliver(message, &peer);
  tell_(peer, FallbackTaken{});
}

void Messenger::taken_by_control(const PeerState& peer) {
  Stream* const stream = stream_to(peer);
  if (stream == nullptr) return;
  if (const MessageNumber number = stream->control.taken()) delivered(*stream, *number);
  push_control(*stream);
}

/// Sends by the control connection what the rail does not deliver in time. It may arrive twice.
void Messenger::rescue_overdue() {
  const auto due = Clock::now() - message_patience;
  for (auto& [post, sent] : in_flight_) {
    if (sent.since > due) break;
    if (sent.abandoned) continue;
    Stream* const stream = stream_of(sent.own_token);
    if (stream == nullptr || !stream->leaves_failed_rail) continue;
    sent.abandoned = true;
    --live_;
    set_aside(stream->route, *stream->peer,
              Error(Code::timed_out, "a message is neither delivered nor failed"));
    resend_by_control(*stream, sent.number, sent.buffer);
  }
}

/// The post of a message has ended.
void Messenger::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& buffer = static_cast<Buffer&>(posted);
  const auto entry = in_flight_.extract(buffer.number);
  const InFlight& sent = entry.mapped();
  if (!sent.abandoned) --live_;
  Stream* const stream = sent.abandoned ? nullptr : stream_of(sent.own_token);
  if (stream != nullptr && !completion.ok) failed(*stream, sent, completion);
  Unacknowledged* const message =
      stream != nullptr && sent.number ? stream->window.find(*sent.number) : nullptr;
  if (message != nullptr && completion.ok) advance(*stream, *message, sent);
  // A message that may have to be sent again keeps its buffer.
  if (message == nullptr || message->buffer != &buffer) sends_.put_back(buffer);
}

/// The rail has delivered it.
void Messenger::advance(Stream& stream, Unacknowledged& message, const InFlight& sent) {
  const bool lost = message.phase == Phase::on_closed_rail;
  message.phase = Phase::delivered;
  delivered(stream, *sent.number);
  if (lost) resend_by_control(stream, sent.number, sent.buffer);
}

/// The peer has it. A transfer whose signal went in fragments waits for those before it, too.
void Messenger::delivered(Stream& stream, std::uint64_t number) {
  Unacknowledged* const message = stream.window.find(number);
  if (message == nullptr) return;
  for (std::uint32_t i = 1; i <= message->before && message->transfer; ++i) {
    Unacknowledged* const earlier = stream.window.find(number - i);
    if (earlier != nullptr && !earlier->ended) earlier->transfer = std::move(message->transfer);
  }
  end(*stream.peer, *message, std::nullopt);
}

/// The rail has not delivered it: another way, or the peer is given up.
void Messenger::failed(Stream& stream, const InFlight& sent,
                       const providers::Completion& completion) {
  PeerState& peer = *stream.peer;
  const Error error = error_of(peer, completion.fabric_code, completion.text);
  const bool leaves = stream.leaves_failed_rail && completion.path_failed;
  if (leaves) set_aside(stream.route, peer, error);
  if (leaves || (stream.may_leave_rail && completion.cut))
    return resend_by_control(stream, sent.number, sent.buffer);
  if (Unacknowledged* message = sent.number ? stream.window.find(*sent.number) : nullptr) {
    message->phase = Phase::failed;
    message->buffer = nullptr;
  }
  failed_.push_back({sent.own_token, sent.number, error});
}

void Messenger::tell_failed() {
  std::vector<Failed> later;
  for (Failed& each : std::exchange(failed_, {})) {
    if (!std::exchange(each.seen, true)) {
      later.push_back(std::move(each));
      continue;
    }
    Stream* const stream = stream_of(each.own_token);
    if (stream == nullptr) continue;
    const std::shared_ptr<PeerState> peer = stream->peer;
    if (Unacknowledged* message = each.number ? stream->window.find(*each.number) : nullptr)
      end(*peer, *message, each.error);
    if (peer->up()) on_broken_(*peer, each.error);
  }
  failed_.insert(failed_.begin(), std::make_move_iterator(later.begin()),
                 std::make_move_iterator(later.end()));
}

Received Messenger::arrived(Buffer& buffer, std::size_t length) {
  deliver({buffer.data, length}, nullptr);
  return Received::free;
}

/// `sender`: null where nothing but the message's token tells it.
void Messenger::deliver(Bytes message, const PeerState* sender) {
  MessageHead head;
  if (message.size() < sizeof head) return;
  std::memcpy(&head, message.data(), sizeof head);
  const Bytes payload = message.subspan(sizeof head);
  Stream* const stream = stream_of(head.token());
  // A late message from a peer that is gone, or one from a stranger.
  if (stream == nullptr || head.length() != payload.size()) return;
  if (sender != nullptr && sender != stream->peer.get()) return;
  const auto kind = static_cast<MessageKind>(head.kind());
  // Acknowledgements count whatever was sent before them.
  if (kind == MessageKind::credits)
    return take_acknowledgement(*stream, head.tag(), head.carried());
  const auto direction = head.reads() ? Direction::read : Direction::write;
  if (!stream->arrivals.put(
          head.sequence(),
          {kind, head.tag(), Blob(payload.begin(), payload.end()), direction, head.carried()}))
    return;
  while (auto next = stream->arrivals.take()) hand_on(*stream, std::move(*next));
}

/// `count`: of the messages that the peer has taken in all. `credits`: as SendWindow::raise().
void Messenger::take_acknowledgement(Stream& stream, std::uint64_t count, std::uint64_t credits) {
  const bool taken = stream.window.acknowledge(count, [&](Unacknowledged& message) {
    if (message.phase == Phase::delivered) sends_.put_back(*message.buffer);
    end(*stream.peer, message, std::nullopt);
  });
  const bool raised = stream.window.raise(credits);
  if (taken || raised) attend(stream);
}

void Messenger::taken_at_goodbye(const PeerState& peer, std::uint64_t count) {
  Stream* const stream = stream_to(peer);
  if (stream == nullptr || count == 0) return;
  if (count > stream->window.next())
    return log(LogLevel::warning, "rail {}: {} says that it took {} packets of messages, of {}",
               rail_name_, peer.introduction.name, count, stream->window.next());
  take_acknowledgement(*stream, count, 0);
}

void Messenger::tidy() {
  for (auto& [token, stream] : streams_) {
    if (!std::exchange(stream.rests, true)) continue;
    // Without what it has used: the peer returns that at its leisure.
    const std::uint64_t spare = stream.window.spare();
    const std::uint64_t had = stream.window.next() - stream.window.first() + spare;
    const std::uint64_t kept = stream.peer->introduction.message_credits;
    const std::uint64_t back = std::min(spare, had - std::min(had, kept));
    if (back == 0) continue;
    stream.window.give_back(back);
    tell_(*stream.peer, CreditsGivenBack{back});
  }
  receives_.tidy();
  sends_.tidy(few_buffers);
}

void Messenger::count_received(PeerTraffic& traffic, const Arrived& message) {
  if (message.kind == MessageKind::tagged) return traffic.add_message(message.bytes.size());
  if (message.kind != MessageKind::signal) return;
  traffic.add_signal(message.bytes.size());
  if (message.carried > 0) traffic.add_of_peer(message.direction, message.carried);
}

void Messenger::hand_on(Stream& stream, Arrived&& packet) {
  // First, since what is handed on may let a call close the engine, whose goodbye tells of it.
  stream.peer->packets_taken.store(stream.taken + 1, std::memory_order_release);
  if (packet.kind == MessageKind::fragment)
    stream.assembly.add(std::move(packet.bytes));
  else if (auto whole = stream.assembly.finish(std::move(packet.bytes)))
    hand_on_whole(stream,
                  {packet.kind, packet.tag, std::move(*whole), packet.direction, packet.carried});
  ++stream.taken;
  if (owes_credits(stream)) attend(stream);
}

/// Data written before this message has arrived already; the flush lets the receiver see it.
void Messenger::hand_on_whole(Stream& stream, Arrived&& message) {
  if (PeerTraffic* const traffic = stream.peer->traffic.get()) count_received(*traffic, message);
  const auto visible = flush_();
  if (!visible) log(LogLevel::error, "rail {}: {}", rail_name_, visible.error().to_string());
  Mailbox& mailbox = stream.peer->mailbox;
  if (message.kind == MessageKind::signal && !visible)
    mailbox.signal_failed(message.tag, visible.error());
  else if (message.kind == MessageKind::signal)
    mailbox.signal_arrived(message.tag, std::move(message.bytes));
  else if (message.kind == MessageKind::tagged)
    mailbox.message_arrived(message.tag, std::move(message.bytes));
}

Error Messenger::error_of(const PeerState& peer, int fabric_code, std::string_view text) const {
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
