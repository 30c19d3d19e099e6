#include "transport/relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "message_generated.h"
#include "peer/peer_state.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

using wire::RelayHead;

enum class Kind : std::uint8_t { write = 1, read, answer, proof };

constexpr std::uint64_t for_receives = 0;

}  // namespace

std::uint64_t Relay::payload_bytes(std::uint64_t message) {
  return message - std::min<std::uint64_t>(message, sizeof(RelayHead));
}

Relay::Relay(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits, FindGrant find_grant)
    : endpoint_(endpoint),
      rail_(rail),
      limits_(limits),
      find_grant_(std::move(find_grant)),
      receives_(endpoint, sizeof(RelayHead) + limits.buffer_bytes),
      sends_(endpoint, sizeof(RelayHead) + limits.buffer_bytes) {}

Result<void> Relay::add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                             std::uint64_t own_token) {
  const Introduction& theirs = peer->introduction;
  route.relay_buffers = std::min<std::size_t>(limits_.buffers, theirs.relay_buffers);
  route.relay_bytes = std::min<std::uint64_t>(limits_.buffer_bytes, theirs.relay_buffer_bytes);
  // Requests from each of the peer's rails that send here, and answers to our own.
  const std::size_t wanted = (route.sources + 1) * limits_.buffers;
  const std::size_t missing = wanted - std::min(wanted, spare_receives_);
  if (auto grown = receives_.grow(missing); !grown) return grown;
  if (auto grown = sends_.grow(missing); !grown) return grown;
  spare_receives_ -= wanted - missing;
  while (Buffer* buffer = receives_.take()) post_receive(*buffer);
  post_failed_receives();
  links_.try_emplace(own_token, Link{peer, &route, wanted});
  return {};
}

std::uint64_t Relay::chunk_limit(const Route& route) const {
  return std::max<std::uint64_t>(1, route.relay_bytes);
}

std::size_t Relay::room(const Route& route) const {
  return route.relay_buffers - std::min(route.relay_buffers, route.relayed);
}

providers::Post Relay::post(Op& op) {
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return {providers::PostStatus::again, 0};
  const PreparedState& prepared = op.transfer->prepared();
  const bool proof = op.chunk.proof();
  const bool write = prepared.direction == Direction::write && !proof;
  const Kind kind = proof ? Kind::proof : (write ? Kind::write : Kind::read);
  const std::uint64_t number = next_number_++;
  const RelayHead head(op.transfer->peer().introduction.token, number,
                       prepared.remote->description().lease, op.chunk.remote, op.chunk.length,
                       rail_, static_cast<std::uint8_t>(kind), 0);
  std::memcpy(buffer->data, &head, sizeof head);
  const SegmentState& segment = *prepared.local;
  if (write)
    segment.device().copy_out(buffer->data + sizeof head, segment.address() + op.chunk.local,
                              op.chunk.length);
  buffer->handler = this;
  buffer->number = number;
  const std::size_t length = sizeof head + (write ? op.chunk.length : 0);
  const providers::Post post =
      endpoint_.send(*buffer, {buffer->data, length, buffer->registration},
                     proof ? prepared.path->of(rail_)->targets[op.chunk.remote].address()
                           : op.route->targets.take_turn().address(),
                     providers::MessageClass::relay);
  if (post.status == providers::PostStatus::posted) {
    pending_.emplace(number, &op);
    ++op.route->relayed;
  } else {
    sends_.put_back(*buffer);
  }
  return post;
}

std::size_t Relay::progress() {
  if (!unposted_.empty())
    for (Buffer* buffer : std::exchange(unposted_, {})) post_receive(*buffer);
  if (!missed_.empty()) answer_again();
  std::size_t count = 0;
  while (!answers_.empty() && send_answer(answers_.front())) {
    answers_.pop_front();
    ++count;
  }
  return count;
}

void Relay::peer_died(Route& route) {
  const auto link = std::find_if(links_.begin(), links_.end(),
                                 [&](const auto& each) { return each.second.route == &route; });
  if (link != links_.end()) {
    std::erase_if(answers_, [&](const Answer& each) { return each.own_token == link->first; });
    std::erase_if(missed_, [&](const auto& each) { return each.second.own_token == link->first; });
    spare_receives_ += link->second.receives;
    links_.erase(link);
  }
  providers::Completion failed;
  failed.ok = false;
  failed.refusal = Code::peer_down;
  failed.text = "the peer went down";
  finish_all(route, failed);
}

void Relay::cut(const Route& route) {
  providers::Completion cut;
  cut.ok = false;
  cut.cut = true;
  cut.text = "a rail was closed and opened again";
  finish_all(route, cut);
}

void Relay::finish_all(const Route& route, const providers::Completion& completion) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, op] : pending_)
    if (op->route == &route) numbers.push_back(number);
  for (const std::uint64_t number : numbers) finish(number, completion);
}

void Relay::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& buffer = static_cast<Buffer&>(posted);
  if (buffer.number != for_receives) {
    sends_.put_back(buffer);
    const auto answer = answering_.extract(buffer.number);
    if (answer && !completion.ok) answer_missed(answer.mapped());
    // A request that went out is over when it is answered.
    if (!answer && !completion.ok) finish(buffer.number, completion);
    return;
  }
  if (completion.ok) {
    post_failed_receives();
    arrived(buffer, completion.length);
  } else {
    log(LogLevel::debug, "relay: a receive failed: {}",
        providers::fabric_text(completion.fabric_code));
    if (completion.cut) return unposted_.push_back(&buffer);
    // Not posted again at once: an endpoint that fails all receives would do so for ever. But
    // messages that are too long are their sender's fault, who may be anybody.
    if (!completion.too_long) return failed_receives_.push_back(&buffer);
  }
  post_receive(buffer);
}

void Relay::arrived(const Buffer& buffer, std::size_t length) {
  RelayHead head;
  if (length < sizeof head) return;
  std::memcpy(&head, buffer.data, sizeof head);
  const auto link = links_.find(head.token());
  if (link == links_.end()) return;  // a peer that is gone, or somebody who has no business here
  const std::size_t payload = length - sizeof head;
  Answer answer{
      head.token(), head.rail(), head.operation(), Code{}, head.lease(), head.offset(), 0, {}};
  switch (static_cast<Kind>(head.kind())) {
    case Kind::write:
      answer.status = head.length() == payload
                          ? write_in(buffer, head.lease(), head.offset(), payload)
                          : Code::invalid_argument;
      break;
    case Kind::read:
      answer.length = head.length();
      if (head.length() == 0 || head.length() > limits_.buffer_bytes)
        answer.status = Code::invalid_argument;
      break;
    case Kind::proof:
      // That it has arrived, behind the bytes in question, is all there is to say.
      break;
    case Kind::answer:
      return answered(link->second, head.operation(), static_cast<Code>(head.status()),
                      buffer.data + sizeof head, payload);
    default:
      return;
  }
  answers_.push_back(answer);
  progress();
}

Code Relay::write_in(const Buffer& buffer, std::uint64_t lease, std::uint64_t offset,
                     std::size_t payload) {
  const auto grant = find_grant_(lease);
  if (!grant) return Code::stale;
  if (!grant->allows(Rights::write, offset, payload)) return Code::permission_denied;
  SegmentState& segment = grant->segment();
  segment.device().copy_in(segment.address() + offset, buffer.data + sizeof(RelayHead), payload);
  return Code{};
}

/// The asker's credit comes back with the answer, so it is sent until it arrives or the peer goes.
void Relay::answer_missed(Answer answer) {
  if (!links_.contains(answer.own_token)) return;
  constexpr Nanoseconds first = std::chrono::milliseconds(10), longest = std::chrono::seconds(1);
  answer.pause = std::clamp<Nanoseconds>(2 * answer.pause, first, longest);
  missed_.emplace_back(Clock::now() + answer.pause, answer);
}

void Relay::answer_again() {
  const auto now = Clock::now();
  std::erase_if(missed_, [&](const auto& each) {
    if (each.first > now) return false;
    answers_.push_back(each.second);
    return true;
  });
}

bool Relay::send_answer(const Answer& answer) {
  const auto link = links_.find(answer.own_token);
  if (link == links_.end()) return true;
  const auto address = link->second.route->addresses.find(answer.rail);
  if (address == link->second.route->addresses.end()) return true;
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return false;

  Code status = answer.status;
  std::size_t payload = 0;
  if (status == Code{} && answer.length > 0) {
    const auto grant = find_grant_(answer.lease);
    if (!grant) {
      status = Code::stale;
    } else if (!grant->allows(Rights::read, answer.offset, answer.length)) {
      status = Code::permission_denied;
    } else {
      payload = answer.length;
      const SegmentState& segment = grant->segment();
      segment.device().copy_out(buffer->data + sizeof(RelayHead), segment.address() + answer.offset,
                                payload);
    }
  }
  const RelayHead head(link->second.peer->introduction.token, answer.operation, 0, 0, payload,
                       rail_, static_cast<std::uint8_t>(Kind::answer),
                       static_cast<std::uint8_t>(status));
  std::memcpy(buffer->data, &head, sizeof head);
  buffer->handler = this;
  buffer->number = next_number_++;
  const providers::Post post =
      endpoint_.send(*buffer, {buffer->data, sizeof head + payload, buffer->registration},
                     address->second.load(), providers::MessageClass::relay);
  if (post.status == providers::PostStatus::posted) {
    answering_.emplace(buffer->number, answer);
    return true;
  }
  sends_.put_back(*buffer);
  // An answer that can't be sent at all is the asker's deadline's business.
  return post.status == providers::PostStatus::failed;
}

void Relay::answered(const Link& link, std::uint64_t operation, Code status,
                     const std::byte* payload, std::size_t length) {
  const auto entry = pending_.find(operation);
  if (entry == pending_.end() || entry->second->route != link.route) return;
  Op& op = *entry->second;
  const PreparedState& prepared = op.transfer->prepared();
  const bool read = prepared.direction == Direction::read && !op.chunk.proof();
  providers::Completion completion;
  if (status == Code{} && length != (read ? op.chunk.length : 0)) status = Code::protocol_mismatch;
  std::string refusal;
  if (status != Code{}) {
    refusal = fmt::format("the peer refused: {}", to_string(status));
    completion.ok = false;
    completion.refusal = status;
    completion.text = refusal;
  } else if (read) {
    const SegmentState& segment = *prepared.local;
    segment.device().copy_in(segment.address() + op.chunk.local, payload, length);
  }
  finish(operation, completion);
}

void Relay::finish(std::uint64_t operation, const providers::Completion& completion) {
  const auto entry = pending_.find(operation);
  if (entry == pending_.end()) return;
  Op& op = *entry->second;
  pending_.erase(entry);
  --op.route->relayed;
  sink().chunk_ended(op, completion);
}

/// A peer that dies takes the receives along that its messages had come to (ofi_rxm fetches large
/// ones by reading), and they count as spare ones.
void Relay::post_failed_receives() {
  for (Buffer* buffer : std::exchange(failed_receives_, {})) post_receive(*buffer);
}

void Relay::post_receive(Buffer& buffer) {
  buffer.handler = this;
  buffer.number = for_receives;
  const providers::Post post =
      endpoint_.receive(buffer, {buffer.data, receives_.buffer_bytes(), buffer.registration},
                        providers::MessageClass::relay);
  if (post.status == providers::PostStatus::again) unposted_.push_back(&buffer);
  if (post.status == providers::PostStatus::failed)
    log(LogLevel::error, "relay: can't post a receive: {}",
        providers::fabric_text(post.fabric_code));
}

}  // namespace weft::core
