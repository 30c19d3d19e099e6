#include "transport/bounce.hpp"

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

using wire::BounceHead;
using wire::BouncePiece;

enum class Kind : std::uint8_t { write = 1, read, answer, proof };

constexpr std::uint64_t for_receives = 0;

// A list takes a small part of a message, also where all pieces are as short as this. And nobody
// shall look for a long time at a list of very many that are shorter still.
constexpr std::uint64_t short_piece = 1024;
constexpr std::size_t longest_list = 1024;

providers::Completion failure(const Error& error) {
  providers::Completion failed;
  failed.ok = false;
  failed.refusal = error.code();
  failed.text = error.message();
  return failed;
}

void copy_at_once(const Device& device, std::span<const Copy> copies) {
  for (const Copy& each : copies) device.copy(each.to, each.from, each.bytes);
}

}  // namespace

std::uint64_t Bounce::message_bytes(std::uint64_t payload) {
  return sizeof(BounceHead) + payload;
}

std::uint64_t Bounce::payload_bytes(std::uint64_t message) {
  const std::uint64_t room = message - std::min<std::uint64_t>(message, sizeof(BounceHead));
  const std::uint64_t list = (room / (short_piece + sizeof(BouncePiece)) + 1) * sizeof(BouncePiece);
  return room - std::min(room, list);
}

std::size_t Bounce::pieces_of(std::uint64_t payload) {
  return std::clamp<std::size_t>(payload / short_piece, 1, longest_list);
}

Bounce::Bounce(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits,
               FindGrant find_grant, FlushArrived flush)
    : endpoint_(endpoint),
      rail_(rail),
      limits_(limits),
      find_grant_(std::move(find_grant)),
      flush_(std::move(flush)),
      receives_(endpoint, std::max(message_bytes(limits.buffer_bytes) + list_bytes(limits.pieces),
                                   limits.longest_message)),
      sends_(endpoint, receives_.buffer_bytes()) {}

Result<void> Bounce::serve(const Device& device) {
  return staging_.serve(device).and_then([&] { return receives_.pin(device); }).and_then([&] {
    return sends_.pin(device);
  });
}

Result<void> Bounce::add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                              std::uint64_t own_token) {
  const Introduction& theirs = peer->introduction;
  route.bounce_buffers = std::min<std::size_t>(limits_.buffers, theirs.bounce_buffers);
  route.bounce_bytes = std::min<std::uint64_t>(limits_.buffer_bytes, theirs.bounce_buffer_bytes);
  route.bounce_pieces = std::clamp<std::size_t>(theirs.bounce_pieces, 1, limits_.pieces);
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

std::uint64_t Bounce::chunk_limit(const Route& route) const {
  return std::max<std::uint64_t>(1, route.bounce_bytes);
}

std::size_t Bounce::most_chunks(const Route& route) const {
  return route.bounce_pieces;
}

std::size_t Bounce::room(const Route& route) const {
  return route.bounce_buffers - std::min(route.bounce_buffers, route.bounced);
}

/// A head names the only piece by itself.
std::size_t Bounce::list_bytes(std::size_t pieces) {
  return pieces > 1 ? pieces * sizeof(BouncePiece) : 0;
}

void Bounce::write_list(std::byte* to, const Op& op) {
  if (op.chunks() == 1) return;
  op.each_chunk([&](const Chunk& chunk) {
    const BouncePiece piece(chunk.remote, chunk.length);
    std::memcpy(to, &piece, sizeof piece);
    to += sizeof piece;
  });
}

/// Between its chunks, one after the other in a buffer, and this side's memory.
std::span<const Copy> Bounce::copies_of(const Op& op, std::byte* buffer, Way way) {
  std::byte* const memory = op.transfer->prepared().local->address();
  copies_.clear();
  op.each_chunk([&](const Chunk& chunk) {
    std::byte* const place = memory + chunk.local;
    copies_.push_back(way == Way::out ? Copy{buffer, place, chunk.length}
                                      : Copy{place, buffer, chunk.length});
    buffer += chunk.length;
  });
  return copies_;
}

/// The same between pieces that a peer has asked for and the granted memory.
std::span<const Copy> Bounce::copies_of(std::span<const Range> pieces, const GrantState& grant,
                                        std::byte* buffer, Way way) {
  copies_.clear();
  for (const Range& piece : pieces) {
    std::byte* const place = grant.segment().address() + piece.offset;
    copies_.push_back(way == Way::out ? Copy{buffer, place, piece.length}
                                      : Copy{place, buffer, piece.length});
    buffer += piece.length;
  }
  return copies_;
}

providers::Post Bounce::post(Op& op) {
  const std::size_t list = list_bytes(op.chunks());
  const std::uint64_t bytes = op.bytes();
  if (op.filled != nullptr)
    return post_filled(op, {op.filled, op.filled->number, std::nullopt, list + bytes});
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return {providers::PostStatus::again, 0};
  const PreparedState& prepared = op.transfer->prepared();
  const bool proof = op.chunk.proof();
  const bool write = prepared.direction == Direction::write && !proof;
  const Kind kind = proof ? Kind::proof : (write ? Kind::write : Kind::read);
  const std::uint64_t number = next_number_++;
  const BounceHead head(op.transfer->peer().introduction.token, number,
                        prepared.remote->description().lease, op.chunk.remote, bytes, rail_,
                        static_cast<std::uint8_t>(kind), 0,
                        static_cast<std::uint16_t>(list / sizeof(BouncePiece)));
  std::memcpy(buffer->data, &head, sizeof head);
  write_list(buffer->data + sizeof head, op);
  buffer->handler = this;
  buffer->number = number;
  const Ready ready{buffer, number, std::nullopt, list + (write ? bytes : 0)};
  if (write) {
    const Device& device = prepared.local->device();
    const auto copies = copies_of(op, buffer->data + sizeof head + list, Way::out);
    if (!device.direct()) {
      stage(op, ready, copies);
      return {providers::PostStatus::posted, 0};
    }
    copy_at_once(device, copies);
    op.transfer->count_copied(bytes);
    op.filled = buffer;
  }
  return post_filled(op, ready);
}

/// What was copied into the buffer stays there until the provider has room for it: it would be
/// copied once more for each time that there is none.
providers::Post Bounce::post_filled(Op& op, const Ready& ready) {
  const providers::Post post = send(ready, op);
  if (post.status == providers::PostStatus::again && op.filled != nullptr) return post;
  op.filled = nullptr;
  if (post.status == providers::PostStatus::posted) {
    pending_.emplace(ready.number, &op);
    ++op.route->bounced;
  } else {
    sends_.put_back(*ready.buffer);
  }
  return post;
}

void Bounce::give_up(Op& op) {
  if (Buffer* buffer = std::exchange(op.filled, nullptr)) sends_.put_back(*buffer);
}

/// It is under way from here on, though nothing of it was sent yet.
void Bounce::stage(Op& op, const Ready& ready, std::span<const Copy> copies) {
  pending_.emplace(ready.number, &op);
  ++op.route->bounced;
  copied_.insert(ready.number);
  const Device& device = op.transfer->prepared().local->device();
  const auto begun =
      staging_.copy_out(device, copies, {Staged::Step::send_request, ready, nullptr});
  if (begun) return op.transfer->count_copied(op.bytes());
  sends_.put_back(*ready.buffer);
  copied_.erase(ready.number);
  finish(ready.number, begun.error());
}

providers::Post Bounce::send(const Ready& ready, const Op& op) {
  Targets& targets = op.transfer->prepared().path->of(rail_)->targets;
  const RemoteRail& target = op.chunk.proof() ? targets[op.chunk.remote] : targets.take_turn();
  Buffer& buffer = *ready.buffer;
  return endpoint_.send(buffer,
                        {buffer.data, sizeof(BounceHead) + ready.bytes, buffer.registration},
                        target.address(), providers::MessageClass::bounce);
}

/// False if the provider has no room for it.
bool Bounce::send_ready(const Ready& ready) {
  if (ready.answer) return send_answer(ready);
  if (given_up(ready)) return true;
  const providers::Post post = send(ready, *pending_.find(ready.number)->second);
  if (post.status != providers::PostStatus::failed)
    return post.status == providers::PostStatus::posted;
  drop(ready, post.fabric_code);
  return true;
}

/// A request that nothing was sent of, and never will be.
void Bounce::drop(const Ready& ready, int fabric_code) {
  sends_.put_back(*ready.buffer);
  providers::Completion unsent;
  unsent.ok = false;
  unsent.unsent = true;
  unsent.fabric_code = fabric_code;
  finish(ready.number, unsent);
}

/// Whether it is a request that was dropped: its transfer is over, or a peer has answered what it
/// was not asked.
bool Bounce::given_up(const Ready& ready) {
  if (ready.answer) return false;
  const auto entry = pending_.find(ready.number);
  if (entry != pending_.end() && !entry->second->transfer->stopped()) return false;
  drop(ready, 0);
  return true;
}

/// None if the peer is gone.
const Route* Bounce::route_of(const Ready& ready) const {
  if (!ready.answer) return pending_.find(ready.number)->second->route;
  const auto link = links_.find(ready.answer->own_token);
  return link == links_.end() ? nullptr : link->second.route;
}

void Bounce::send_when_room(Ready ready) {
  const Route* route = route_of(ready);
  if (route == nullptr) return sends_.put_back(*ready.buffer);
  if (unsent_.contains(route) || !send_ready(ready)) unsent_[route].push_back(std::move(ready));
}

std::size_t Bounce::send_waiting() {
  std::size_t count = 0;
  for (auto each = unsent_.begin(); each != unsent_.end();) {
    std::deque<Ready>& waiting = each->second;
    count += std::erase_if(waiting, [this](const Ready& ready) { return given_up(ready); });
    for (; !waiting.empty() && send_ready(waiting.front()); ++count) waiting.pop_front();
    each = waiting.empty() ? unsent_.erase(each) : std::next(each);
  }
  return count;
}

/// A device has failed during the copy, and nobody knows whether that has ended: chunk, grant and
/// buffer are held from here on. Whoever waits for it learns that nothing comes.
void Bounce::lost(const Staged& staged, const Error& error) {
  if (staged.ready.answer) {
    answers_.push_back(*staged.ready.answer);
    answers_.back().status = Code::unavailable;
    return;
  }
  if (const auto entry = pending_.find(staged.ready.number); entry != pending_.end())
    entry->second->transfer->end_early(State::failed, error);
}

/// What follows the copies of a device's; with an error if some could not begin.
void Bounce::copied(Staged&& staged, const std::optional<Error>& error) {
  if (staged.grant) staged.grant->copying().leave();
  Ready& ready = staged.ready;
  switch (staged.step) {
    case Staged::Step::send_request:
      return request_copied(ready, error);
    case Staged::Step::send_answer:
      return answer_copied(std::move(ready), error);
    case Staged::Step::write_in:
      if (error) ready.answer->status = could_not_copy(*error);
      answers_.push_back(std::move(*ready.answer));
      return post_receive(*ready.buffer);
    case Staged::Step::read_in:
      post_receive(*ready.buffer);
      return finish_copied(ready.number, error);
  }
}

/// Unless it has come to another end meanwhile.
void Bounce::finish_copied(std::uint64_t operation, const std::optional<Error>& error) {
  copied_.erase(operation);
  if (const auto doomed = doomed_.extract(operation)) return finish(operation, doomed.mapped());
  finish(operation, error ? failure(*error) : providers::Completion{});
}

void Bounce::request_copied(const Ready& ready, const std::optional<Error>& error) {
  if (error || doomed_.contains(ready.number)) {
    sends_.put_back(*ready.buffer);
    return finish_copied(ready.number, error);
  }
  copied_.erase(ready.number);
  send_when_room(ready);
}

void Bounce::answer_copied(Ready ready, const std::optional<Error>& error) {
  Answer& answer = *ready.answer;
  if (error) answer.status = could_not_copy(*error);
  // The bytes count only if the grant held until they had been read.
  else if (!find_grant_(answer.lease))
    answer.status = Code::stale;
  if (answer.status != Code{}) ready.bytes = 0;
  send_when_room(std::move(ready));
}

std::size_t Bounce::progress() {
  if (!unposted_.empty())
    for (Buffer* buffer : std::exchange(unposted_, {})) post_receive(*buffer);
  if (!missed_.empty()) answer_again();
  std::size_t count = staging_.progress(
      [this](Staged&& staged, const auto& error) { copied(std::move(staged), error); },
      [this](const Staged& staged, const Error& error) { lost(staged, error); });
  if (!unsent_.empty()) count += send_waiting();
  for (; !answers_.empty() && answer(answers_.front()); ++count) answers_.pop_front();
  return count;
}

bool Bounce::settle(Deadline deadline) {
  return staging_.settle(deadline, [](Staged&& staged, const auto&) {
    if (staged.grant) staged.grant->copying().leave();
  });
}

void Bounce::keep_buffers() {
  receives_.leak();
  sends_.leak();
}

void Bounce::peer_died(Route& route) {
  const auto link = std::find_if(links_.begin(), links_.end(),
                                 [&](const auto& each) { return each.second.route == &route; });
  if (link != links_.end()) {
    std::erase_if(answers_, [&](const Answer& each) { return each.own_token == link->first; });
    std::erase_if(missed_, [&](const auto& each) { return each.second.own_token == link->first; });
    spare_receives_ += link->second.receives;
    links_.erase(link);
  }
  if (const auto unsent = unsent_.extract(&route))
    for (const Ready& ready : unsent.mapped()) sends_.put_back(*ready.buffer);
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

void Bounce::cut(const Route& route) {
  providers::Completion cut;
  cut.ok = false;
  cut.cut = true;
  cut.text = "a rail was closed and opened again";
  const auto waiting = unsent_.find(&route);
  const auto unsent = [&](std::uint64_t number) {
    return waiting != unsent_.end() &&
           std::any_of(waiting->second.begin(), waiting->second.end(),
                       [&](const Ready& ready) { return !ready.answer && ready.number == number; });
  };
  for (const std::uint64_t number : pending_on(route))
    if (!copied_.contains(number) && !unsent(number)) finish(number, cut);
}

std::vector<std::uint64_t> Bounce::pending_on(const Route& route) const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, op] : pending_)
    if (op->route == &route) numbers.push_back(number);
  return numbers;
}

void Bounce::completed(providers::Posted& posted, const providers::Completion& completion) {
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
    log(LogLevel::debug, "bounce: a receive failed: {}",
        providers::fabric_text(completion.fabric_code));
    if (completion.cut) return unposted_.push_back(&buffer);
    // Not posted again at once: an endpoint that fails all receives would do so for ever. But
    // messages that are too long are their sender's fault, who may be anybody.
    if (!completion.too_long) return failed_receives_.push_back(&buffer);
  }
  post_receive(buffer);
}

Bounce::Received Bounce::arrived(Buffer& buffer, std::size_t length) {
  BounceHead head;
  if (length < sizeof head) return Received::free;
  std::memcpy(&head, buffer.data, sizeof head);
  const auto link = links_.find(head.token());
  // A peer that is gone, or somebody who has no business here.
  if (link == links_.end()) return Received::free;
  const std::span behind(buffer.data + sizeof head, length - sizeof head);
  Answer answer{head.token(), head.rail(), head.operation(), Code{}, head.lease()};
  const auto kind = static_cast<Kind>(head.kind());
  switch (kind) {
    case Kind::write:
    case Kind::read:
      if (!read_list(head, behind))
        answer.status = Code::invalid_argument;
      else if (kind == Kind::read)
        answer.reads = asked_;
      else if (write_in(buffer, behind.last(head.length()).data(), answer) == Received::kept)
        return Received::kept;
      break;
    case Kind::proof:
      // It has arrived behind the bytes in question: all that is left is that they be seen.
      if (const auto visible = flush_(); !visible) {
        log(LogLevel::error, "bounce: {}", visible.error().to_string());
        answer.status = Code::unavailable;
      }
      break;
    case Kind::answer:
      return answered(link->second, buffer, head.operation(), static_cast<Code>(head.status()),
                      behind.size());
    default:
      return Received::free;
  }
  answers_.push_back(std::move(answer));
  progress();
  return Received::free;
}

/// Takes the pieces that a request is for into asked_. False unless they are as the head says: of
/// so many bytes, which are there if they are to be written, and nothing else.
bool Bounce::read_list(const BounceHead& head, std::span<const std::byte> behind) {
  const std::size_t pieces = head.pieces(), list = pieces * sizeof(BouncePiece);
  const bool write = static_cast<Kind>(head.kind()) == Kind::write;
  // Who knows no lists leaves no room for them, and fills a message with his piece.
  const std::uint64_t most =
      pieces > 0 ? limits_.buffer_bytes : receives_.buffer_bytes() - sizeof(BounceHead);
  if (pieces > limits_.pieces || head.length() > most) return false;
  if (behind.size() != list + (write ? head.length() : 0)) return false;
  asked_.assign(1, {head.offset(), head.length()});
  if (pieces == 0) return write || head.length() > 0;
  asked_.clear();
  std::uint64_t sum = 0;
  for (; asked_.size() < pieces; behind = behind.subspan(sizeof(BouncePiece))) {
    BouncePiece piece;
    std::memcpy(&piece, behind.data(), sizeof piece);
    if (piece.length() == 0 || piece.length() > head.length() - sum) return false;
    sum += piece.length();
    asked_.push_back({piece.offset(), piece.length()});
  }
  return sum == head.length();
}

/// The grant, if what is asked for may be done now: all of it.
std::shared_ptr<GrantState> Bounce::allowed(Answer& answer, Rights rights,
                                            std::span<const Range> pieces) const {
  auto grant = find_grant_(answer.lease);
  const auto within = [&](const Range& piece) {
    return grant->allows(rights, piece.offset, piece.length);
  };
  if (!grant)
    answer.status = Code::stale;
  else if (!std::all_of(pieces.begin(), pieces.end(), within) || !grant->segment().served_by(rail_))
    answer.status = Code::permission_denied;
  else if (grant->segment().device().direct() || grant->copying().enter())
    return grant;
  else
    answer.status = Code::stale;
  return nullptr;
}

Bounce::Received Bounce::write_in(Buffer& buffer, std::byte* from, Answer& answer) {
  const auto grant = allowed(answer, Rights::write, asked_);
  if (!grant) return Received::free;
  const Device& device = grant->segment().device();
  const auto copies = copies_of(asked_, *grant, from, Way::in);
  if (device.direct()) {
    copy_at_once(device, copies);
    return Received::free;
  }
  const auto begun =
      staging_.copy_in(device, copies, {Staged::Step::write_in, {&buffer, 0, answer, 0}, grant});
  if (begun) return Received::kept;
  grant->copying().leave();
  answer.status = could_not_copy(begun.error());
  return Received::free;
}

/// What the peer is told of it.
Code Bounce::could_not_copy(const Error& error) {
  log(LogLevel::error, "bounce: {}", error.to_string());
  return Code::unavailable;
}

/// The asker's credit comes back with the answer, so it is sent until it arrives or the peer goes.
void Bounce::answer_missed(Answer answer) {
  if (!links_.contains(answer.own_token)) return;
  constexpr Nanoseconds first = std::chrono::milliseconds(10), longest = std::chrono::seconds(1);
  answer.pause = std::clamp<Nanoseconds>(2 * answer.pause, first, longest);
  missed_.emplace_back(Clock::now() + answer.pause, answer);
}

void Bounce::answer_again() {
  const auto now = Clock::now();
  std::erase_if(missed_, [&](const auto& each) {
    if (each.first > now) return false;
    answers_.push_back(each.second);
    return true;
  });
}

/// False if there is no buffer for it.
bool Bounce::answer(const Answer& asked) {
  if (!links_.contains(asked.own_token)) return true;
  Buffer* buffer = sends_.take();
  if (buffer == nullptr) return false;
  Ready ready{buffer, 0, asked, 0};
  const bool reads = asked.status == Code{} && !asked.reads.empty();
  if (!reads || read_out(ready) == Copied::now) send_when_room(std::move(ready));
  return true;
}

Bounce::Copied Bounce::read_out(Ready& ready) {
  Answer& answer = *ready.answer;
  const auto grant = allowed(answer, Rights::read, answer.reads);
  if (!grant) return Copied::now;
  const Device& device = grant->segment().device();
  const auto copies =
      copies_of(answer.reads, *grant, ready.buffer->data + sizeof(BounceHead), Way::out);
  for (const Copy& each : copies) ready.bytes += each.bytes;
  if (device.direct()) {
    copy_at_once(device, copies);
    return Copied::now;
  }
  const auto begun = staging_.copy_out(device, copies, {Staged::Step::send_answer, ready, grant});
  if (begun) return Copied::later;
  grant->copying().leave();
  ready.bytes = 0;
  answer.status = could_not_copy(begun.error());
  return Copied::now;
}

/// False if the provider has no room for it.
bool Bounce::send_answer(const Ready& ready) {
  const Answer& answer = *ready.answer;
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
  const BounceHead head(link->second.peer->introduction.token, answer.operation, 0, 0, ready.bytes,
                        rail_, static_cast<std::uint8_t>(Kind::answer),
                        static_cast<std::uint8_t>(answer.status), 0);
  std::memcpy(buffer.data, &head, sizeof head);
  buffer.handler = this;
  buffer.number = next_number_++;
  const providers::Post post =
      endpoint_.send(buffer, {buffer.data, sizeof head + ready.bytes, buffer.registration},
                     address->load(), providers::MessageClass::bounce);
  if (post.status == providers::PostStatus::again) return false;
  if (post.status == providers::PostStatus::posted)
    answering_.emplace(buffer.number, answer);
  else
    sends_.put_back(buffer);  // an answer that can't be sent is the asker's deadline's business
  return true;
}

Bounce::Received Bounce::answered(const Link& link, Buffer& buffer, std::uint64_t operation,
                                  Code status, std::size_t length) {
  const auto entry = pending_.find(operation);
  if (entry == pending_.end() || entry->second->route != link.route) return Received::free;
  if (copied_.contains(operation)) return Received::free;  // not asked yet, or answered before
  Op& op = *entry->second;
  const PreparedState& prepared = op.transfer->prepared();
  const bool read = prepared.direction == Direction::read && !op.chunk.proof();
  if (status == Code{} && length != (read ? op.bytes() : 0)) status = Code::protocol_mismatch;
  if (status != Code{}) {
    finish(operation, Error(status, fmt::format("the peer refused: {}", to_string(status))));
    return Received::free;
  }
  if (read) {
    const Device& device = prepared.local->device();
    const auto copies = copies_of(op, buffer.data + sizeof(BounceHead), Way::in);
    op.transfer->count_copied(length);
    if (!device.direct()) return read_in(device, copies, {&buffer, operation, {}, 0});
    copy_at_once(device, copies);
  }
  finish(operation, providers::Completion{});
  return Received::free;
}

Bounce::Received Bounce::read_in(const Device& device, std::span<const Copy> copies,
                                 const Ready& ready) {
  copied_.insert(ready.number);
  const auto begun = staging_.copy_in(device, copies, {Staged::Step::read_in, ready, nullptr});
  if (begun) return Received::kept;
  copied_.erase(ready.number);
  finish(ready.number, begun.error());
  return Received::free;
}

void Bounce::finish(std::uint64_t operation, const Error& error) {
  finish(operation, failure(error));
}

void Bounce::finish(std::uint64_t operation, const providers::Completion& completion) {
  const auto entry = pending_.find(operation);
  if (entry == pending_.end()) return;
  Op& op = *entry->second;
  pending_.erase(entry);
  --op.route->bounced;
  sink().chunk_ended(op, completion);
}

/// A peer that dies takes the receives along that its messages had come to (ofi_rxm fetches large
/// ones by reading), and they count as spare ones.
void Bounce::post_failed_receives() {
  for (Buffer* buffer : std::exchange(failed_receives_, {})) post_receive(*buffer);
}

void Bounce::post_receive(Buffer& buffer) {
  buffer.handler = this;
  buffer.number = for_receives;
  const providers::Post post =
      endpoint_.receive(buffer, {buffer.data, receives_.buffer_bytes(), buffer.registration},
                        providers::MessageClass::bounce);
  if (post.status == providers::PostStatus::again) unposted_.push_back(&buffer);
  if (post.status == providers::PostStatus::failed)
    log(LogLevel::error, "bounce: can't post a receive: {}",
        providers::fabric_text(post.fabric_code));
}

}  // namespace weft::core
