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

Relay::Relay(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits, FindGrant find_grant,
             FlushArrived flush)
    : endpoint_(endpoint),
      rail_(rail),
      limits_(limits),
      find_grant_(std::move(find_grant)),
      flush_(std::move(flush)),
      receives_(endpoint, sizeof(RelayHead) + limits.buffer_bytes),
      sends_(endpoint, sizeof(RelayHead) + limits.buffer_bytes) {}

Result<void> Relay::serve(const Device& device) {
  return staging_.serve(device).and_then([&] { return receives_.pin(device); }).and_then([&] {
    return sends_.pin(device);
  });
}

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
  if (op.filled != nullptr)
    return post_filled(op, {op.filled, op.filled->number, std::nullopt, op.chunk.length});
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
  buffer->handler = this;
  buffer->number = number;
  const Ready ready{buffer, number, std::nullopt, write ? op.chunk.length : 0};
  if (write) {
    const Device& device = prepared.local->device();
    const std::byte* from = prepared.local->address() + op.chunk.local;
    if (!device.direct()) {
      stage(op, ready, from);
      return {providers::PostStatus::posted, 0};
    }
    device.copy(buffer->data + sizeof head, from, op.chunk.length);
    op.transfer->count_copied(op.chunk.length);
    op.filled = buffer;
  }
  return post_filled(op, ready);
}

/// What was copied into the buffer stays there until the provider has room for it: it would be
/// copied once more for each time that there is none.
providers::Post Relay::post_filled(Op& op, const Ready& ready) {
  const providers::Post post = send(ready, op);
  if (post.status == providers::PostStatus::again && op.filled != nullptr) return post;
  op.filled = nullptr;
  if (post.status == providers::PostStatus::posted) {
    pending_.emplace(ready.number, &op);
    ++op.route->relayed;
  } else {
    sends_.put_back(*ready.buffer);
  }
  return post;
}

void Relay::give_up(Op& op) {
  if (Buffer* buffer = std::exchange(op.filled, nullptr)) sends_.put_back(*buffer);
}

/// A chunk that is under way from here on, though nothing of it was sent yet.
void Relay::stage(Op& op, const Ready& ready, const std::byte* from) {
  pending_.emplace(ready.number, &op);
  ++op.route->relayed;
  copied_.insert(ready.number);
  Staged then;
  then.ready = ready;
  const auto begun =
      staging_.copy_out(op.transfer->prepared().local->device(),
                        ready.buffer->data + sizeof(RelayHead), from, ready.payload, then);
  if (begun) return op.transfer->count_copied(ready.payload);
  sends_.put_back(*ready.buffer);
  copied_.erase(ready.number);
  finish(ready.number, begun.error());
}

providers::Post Relay::send(const Ready& ready, const Op& op) {
  Targets& targets = op.transfer->prepared().path->of(rail_)->targets;
  const RemoteRail& target = op.chunk.proof() ? targets[op.chunk.remote] : targets.take_turn();
  Buffer& buffer = *ready.buffer;
  return endpoint_.send(buffer,
                        {buffer.data, sizeof(RelayHead) + ready.payload, buffer.registration},
                        target.address(), providers::MessageClass::relay);
}

/// False if the provider has no room for it.
bool Relay::send_ready(const Ready& ready) {
  if (ready.answer) return send_answer(ready, *ready.answer);
  const auto entry = pending_.find(ready.number);
  // It has ended meanwhile, or its transfer has: nothing of it goes out any more.
  const bool over = entry == pending_.end() || entry->second->transfer->ended();
  const providers::Post post =
      over ? providers::Post{providers::PostStatus::failed, 0} : send(ready, *entry->second);
  if (post.status != providers::PostStatus::failed)
    return post.status == providers::PostStatus::posted;
  sends_.put_back(*ready.buffer);
  providers::Completion failed;
  failed.ok = false;
  failed.fabric_code = post.fabric_code;
  finish(ready.number, failed);
  return true;
}

void Relay::send_when_room(const Ready& ready) {
  if (!unsent_.empty() || !send_ready(ready)) unsent_.push_back(ready);
}

/// A device has failed during the copy, and nobody knows whether that has ended: chunk, grant and
/// buffer are held from here on. Whoever waits for it learns that nothing comes.
void Relay::lost(const Staged& staged, const Error& error) {
  if (staged.ready.answer) {
    answers_.push_back(*staged.ready.answer);
    answers_.back().status = Code::unavailable;
    return;
  }
  if (const auto entry = pending_.find(staged.ready.number); entry != pending_.end())
    entry->second->transfer->end_early(State::failed, error);
}

/// What follows the copy of a device's.
void Relay::copied(Staged&& staged) {
  if (staged.grant) staged.grant->copying().leave();
  switch (staged.step) {
    case Staged::Step::send_request:
      return request_copied(staged.ready);
    case Staged::Step::send_answer:
      return answer_copied(staged.ready);
    case Staged::Step::write_in:
      answers_.push_back(*staged.ready.answer);
      return post_receive(*staged.ready.buffer);
    case Staged::Step::read_in:
      post_receive(*staged.ready.buffer);
      copied_.erase(staged.ready.number);
      if (const auto doomed = doomed_.extract(staged.ready.number))
        return finish(staged.ready.number, doomed.mapped());
      return finish(staged.ready.number, providers::Completion{});
  }
}

void Relay::request_copied(const Ready& ready) {
  copied_.erase(ready.number);
  const auto doomed = doomed_.extract(ready.number);
  if (!doomed) return send_when_room(ready);
  sends_.put_back(*ready.buffer);
  finish(ready.number, doomed.mapped());
}

void Relay::answer_copied(Ready ready) {
  Answer& answer = *ready.answer;
  // The bytes count only if the grant held until they had been read.
  if (!find_grant_(answer.lease)) {
    answer.status = Code::stale;
    ready.payload = 0;
  }
  send_when_room(ready);
}

std::size_t Relay::progress() {
  if (!unposted_.empty())
    for (Buffer* buffer : std::exchange(unposted_, {})) post_receive(*buffer);
  if (!missed_.empty()) answer_again();
  std::size_t count =
      staging_.progress([this](Staged&& staged) { copied(std::move(staged)); },
                        [this](const Staged& staged, const Error& error) { lost(staged, error); });
  for (; !unsent_.empty() && send_ready(unsent_.front()); ++count) unsent_.pop_front();
  for (; !answers_.empty() && answer(answers_.front()); ++count) answers_.pop_front();
  return count;
}

bool Relay::settle(Deadline deadline) {
  return staging_.settle(deadline, [](Staged&& staged) {
    if (staged.grant) staged.grant->copying().leave();
  });
}

void Relay::keep_buffers() {
  receives_.keep_for_good();
  sends_.keep_for_good();
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
  for (const std::uint64_t number : pending_on(route)) {
    if (copied_.contains(number))
      doomed_.emplace(number, failed);  // once nothing touches its memory any more
    else
      finish(number, failed);
  }
}

void Relay::cut(const Route& route) {
  providers::Completion cut;
  cut.ok = false;
  cut.cut = true;
  cut.text = "a rail was closed and opened again";
  const auto unsent = [this](std::uint64_t number) {
    return std::any_of(unsent_.begin(), unsent_.end(),
                       [&](const Ready& ready) { return !ready.answer && ready.number == number; });
  };
  for (const std::uint64_t number : pending_on(route))
    if (!copied_.contains(number) && !unsent(number)) finish(number, cut);
}

std::vector<std::uint64_t> Relay::pending_on(const Route& route) const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, op] : pending_)
    if (op->route == &route) numbers.push_back(number);
  return numbers;
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
    if (arrived(buffer, completion.length) == Received::kept) return;
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

Relay::Received Relay::arrived(Buffer& buffer, std::size_t length) {
  RelayHead head;
  if (length < sizeof head) return Received::free;
  std::memcpy(&head, buffer.data, sizeof head);
  const auto link = links_.find(head.token());
  // A peer that is gone, or somebody who has no business here.
  if (link == links_.end()) return Received::free;
  const std::size_t payload = length - sizeof head;
  Answer answer{
      head.token(), head.rail(), head.operation(), Code{}, head.lease(), head.offset(), 0, {}};
  switch (static_cast<Kind>(head.kind())) {
    case Kind::write:
      if (head.length() != payload)
        answer.status = Code::invalid_argument;
      else if (write_in(buffer, payload, answer) == Received::kept)
        return Received::kept;
      break;
    case Kind::read:
      answer.length = head.length();
      if (head.length() == 0 || head.length() > limits_.buffer_bytes)
        answer.status = Code::invalid_argument;
      break;
    case Kind::proof:
      // It has arrived behind the bytes in question: all that is left is that they be seen.
      if (const auto visible = flush_(); !visible) {
        log(LogLevel::error, "relay: {}", visible.error().to_string());
        answer.status = Code::unavailable;
      }
      break;
    case Kind::answer:
      return answered(link->second, buffer, head.operation(), static_cast<Code>(head.status()),
                      payload);
    default:
      return Received::free;
  }
  answers_.push_back(answer);
  progress();
  return Received::free;
}

/// The grant, if what is asked for may be done now.
std::shared_ptr<GrantState> Relay::allowed(Answer& answer, Rights rights, std::size_t bytes) const {
  auto grant = find_grant_(answer.lease);
  if (!grant)
    answer.status = Code::stale;
  else if (!grant->allows(rights, answer.offset, bytes) || !grant->segment().served_by(rail_))
    answer.status = Code::permission_denied;
  else if (grant->segment().device().direct() || grant->copying().enter())
    return grant;
  else
    answer.status = Code::stale;
  return nullptr;
}

Relay::Received Relay::write_in(Buffer& buffer, std::size_t payload, Answer& answer) {
  const auto grant = allowed(answer, Rights::write, payload);
  if (!grant) return Received::free;
  const Device& device = grant->segment().device();
  std::byte* to = grant->segment().address() + answer.offset;
  const std::byte* from = buffer.data + sizeof(RelayHead);
  if (device.direct()) {
    device.copy(to, from, payload);
    return Received::free;
  }
  const auto begun = staging_.copy_in(
      device, to, from, payload, {Staged::Step::write_in, {&buffer, 0, answer, payload}, grant});
  if (begun) return Received::kept;
  could_not_copy(*grant, answer, begun.error());
  return Received::free;
}

void Relay::could_not_copy(GrantState& grant, Answer& answer, const Error& error) {
  log(LogLevel::error, "relay: {}", error.to_string());
  answer.status = Code::unavailable;
  grant.copying().leave();
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

/// False if there is no room for it.
bool Relay::answer(Answer answer) {
  if (!links_.contains(answer.own_token)) return true;
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return false;
  Ready ready{buffer, 0, std::nullopt, 0};
  if (answer.status == Code{} && answer.length > 0 && read_out(ready, answer) == Copied::later)
    return true;
  if (send_answer(ready, answer)) return true;
  sends_.put_back(*buffer);
  return false;
}

Relay::Copied Relay::read_out(Ready& ready, Answer& answer) {
  const auto grant = allowed(answer, Rights::read, answer.length);
  if (!grant) return Copied::now;
  const Device& device = grant->segment().device();
  std::byte* to = ready.buffer->data + sizeof(RelayHead);
  const std::byte* from = grant->segment().address() + answer.offset;
  ready.payload = answer.length;
  if (device.direct()) {
    device.copy(to, from, answer.length);
    return Copied::now;
  }
  ready.answer = answer;
  const auto begun =
      staging_.copy_out(device, to, from, answer.length, {Staged::Step::send_answer, ready, grant});
  if (begun) return Copied::later;
  ready.payload = 0;
  could_not_copy(*grant, answer, begun.error());
  return Copied::now;
}

/// False if the provider has no room for it.
bool Relay::send_answer(const Ready& ready, const Answer& answer) {
  Buffer& buffer = *ready.buffer;
  const auto link = links_.find(answer.own_token);
  const std::atomic<providers::FabricAddress>* address = nullptr;
  if (link != links_.end()) {
    const auto& addresses = link->second.route->addresses;
    if (const auto known = addresses.find(answer.rail); known != addresses.end())
      address = &known->second;
  }
  if (address == nullptr) {
    sends_.put_back(buffer);
    return true;
  }
  const RelayHead head(link->second.peer->introduction.token, answer.operation, 0, 0, ready.payload,
                       rail_, static_cast<std::uint8_t>(Kind::answer),
                       static_cast<std::uint8_t>(answer.status));
  std::memcpy(buffer.data, &head, sizeof head);
  buffer.handler = this;
  buffer.number = next_number_++;
  const providers::Post post =
      endpoint_.send(buffer, {buffer.data, sizeof head + ready.payload, buffer.registration},
                     address->load(), providers::MessageClass::relay);
  if (post.status == providers::PostStatus::again) return false;
  if (post.status == providers::PostStatus::posted)
    answering_.emplace(buffer.number, answer);
  else
    sends_.put_back(buffer);  // an answer that can't be sent is the asker's deadline's business
  return true;
}

Relay::Received Relay::answered(const Link& link, Buffer& buffer, std::uint64_t operation,
                                Code status, std::size_t length) {
  const auto entry = pending_.find(operation);
  if (entry == pending_.end() || entry->second->route != link.route) return Received::free;
  if (copied_.contains(operation)) return Received::free;  // not asked yet, or answered before
  Op& op = *entry->second;
  const PreparedState& prepared = op.transfer->prepared();
  const bool read = prepared.direction == Direction::read && !op.chunk.proof();
  if (status == Code{} && length != (read ? op.chunk.length : 0)) status = Code::protocol_mismatch;
  if (status != Code{}) {
    finish(operation, Error(status, fmt::format("the peer refused: {}", to_string(status))));
    return Received::free;
  }
  if (read) {
    const Device& device = prepared.local->device();
    std::byte* to = prepared.local->address() + op.chunk.local;
    const std::byte* from = buffer.data + sizeof(RelayHead);
    op.transfer->count_copied(length);
    if (!device.direct()) return read_in(device, to, from, {&buffer, operation, {}, length});
    device.copy(to, from, length);
  }
  finish(operation, providers::Completion{});
  return Received::free;
}

Relay::Received Relay::read_in(const Device& device, std::byte* to, const std::byte* from,
                               const Ready& ready) {
  copied_.insert(ready.number);
  const auto begun =
      staging_.copy_in(device, to, from, ready.payload, {Staged::Step::read_in, ready, nullptr});
  if (begun) return Received::kept;
  copied_.erase(ready.number);
  finish(ready.number, begun.error());
  return Received::free;
}

void Relay::finish(std::uint64_t operation, const Error& error) {
  providers::Completion failed;
  failed.ok = false;
  failed.refusal = error.code();
  failed.text = error.message();
  finish(operation, failed);
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
