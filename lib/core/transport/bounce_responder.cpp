#include "transport/bounce_responder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "peer/peer_state.hpp"

namespace weft::core {

using wire::BounceHead;

BounceAnswer& BounceResponder::begin(BounceLink& link, std::uint32_t rail,
                                     std::uint64_t operation) {
  BounceAnswer& answer = answers_.take();
  answer.link = &link;
  answer.phase = Phase::waiting;
  answer.rail = rail;
  answer.operation = operation;
  answer.status = Code{};
  answer.why.clear();
  answer.priority = Priority::normal;
  answer.reads.clear();
  answer.bytes = 0;
  answer.pause = {};
  return answer;
}

void BounceResponder::release(BounceAnswer& answer) {
  if (Buffer* buffer = std::exchange(answer.buffer, nullptr)) core_.sends.put_back(*buffer);
  answers_.release(answer);
}

Received BounceResponder::requested(BounceLink& link, Buffer& buffer,
                                    const BounceMessage& message) {
  BounceAnswer& answer = begin(link, message.head.rail(), message.head.operation());
  answer.lease = message.head.lease();
  answer.priority = priority_from(message.head.status());
  carry_out(answer, buffer, message);
  if (answer.phase == Phase::copying_in) return Received::kept;
  due_.push_back(&answer);
  progress();
  return Received::free;
}

/// What can be done before there is a buffer for the answer.
void BounceResponder::carry_out(BounceAnswer& answer, Buffer& buffer,
                                const BounceMessage& message) {
  if (message.kind() == BounceKind::proof) {
    // It has arrived behind the bytes in question: all that is left is to make them visible.
    if (const auto visible = flush_(); !visible) refuse(answer, visible.error());
    return;
  }
  if (message.head.pieces() > bounce_pieces(buffer_bytes_) ||
      message.head.length() > buffer_bytes_ || !message.read_pieces(asked_))
    answer.status = Code::invalid_argument;
  else if (message.kind() == BounceKind::read)
    answer.reads.assign(asked_.begin(), asked_.end());
  else
    write_in(answer, buffer, message);
}

/// The grant, if what is asked for may be done now: all of it.
std::shared_ptr<GrantState> BounceResponder::allowed(BounceAnswer& answer, Rights rights,
                                                     std::span<const Range> pieces) const {
  auto grant = find_grant_(answer.lease);
  const auto within = [&](const Range& piece) {
    return grant->allows(rights, piece.offset, piece.length);
  };
  if (!grant)
    answer.status = Code::stale;
  else if (!std::all_of(pieces.begin(), pieces.end(), within) ||
           !grant->segment().served_by(core_.rail))
    answer.status = Code::permission_denied;
  else if (grant->segment().device().direct() || grant->copying().enter())
    return grant;
  else
    answer.status = Code::stale;
  return nullptr;
}

/// Returns the device whose memory it is.
const Device& BounceResponder::list_copies(Way way, const GrantState& grant,
                                           std::span<const Range> pieces, std::byte* buffer) {
  core_.copies.begin(way, buffer);
  for (const Range& piece : pieces)
    core_.copies.add(grant.segment().address() + piece.offset, piece.length);
  return grant.segment().device();
}

void BounceResponder::write_in(BounceAnswer& answer, Buffer& buffer, const BounceMessage& message) {
  auto grant = allowed(answer, Rights::write, asked_);
  if (!grant) return;
  const Device& device = list_copies(Way::into_memory, *grant, asked_, message.payload());
  if (device.direct()) return core_.copies.copy(device);
  if (const auto begun =
          core_.staging.copy_in(device, core_.copies.list(), answer.priority, {nullptr, &answer});
      !begun) {
    grant->copying().leave();
    refuse(answer, begun.error());
    return;
  }
  answer.phase = Phase::copying_in;
  answer.buffer = &buffer;
  answer.grant = std::move(grant);
}

/// Into the answer's buffer.
void BounceResponder::read_out(BounceAnswer& answer) {
  auto grant = allowed(answer, Rights::read, answer.reads);
  if (!grant) return;
  const Device& device =
      list_copies(Way::out_of_memory, *grant, answer.reads, answer.buffer->data + answer_head);
  for (const Range& piece : answer.reads) answer.bytes += piece.length;
  if (device.direct()) return core_.copies.copy(device);
  if (const auto begun =
          core_.staging.copy_out(device, core_.copies.list(), answer.priority, {nullptr, &answer});
      !begun) {
    grant->copying().leave();
    answer.bytes = 0;
    refuse(answer, begun.error());
    return;
  }
  answer.phase = Phase::copying_out;
  answer.grant = std::move(grant);
}

/// Logs it, and tells the peer.
void BounceResponder::refuse(BounceAnswer& answer, const Error& error) const {
  log(LogLevel::error, "bounce: {}", error.to_string());
  const bool told = error.code() == Code::corrupt || error.code() == Code::invalid_argument;
  answer.status = told ? error.code() : Code::unavailable;
  answer.why = error.message().substr(0, std::min<std::size_t>(longest_refusal, buffer_bytes_));
}

Buffer* BounceResponder::copied(BounceAnswer& answer, const std::optional<Error>& error) {
  std::exchange(answer.grant, nullptr)->copying().leave();
  Buffer* received = nullptr;
  if (answer.phase == Phase::copying_in) {
    received = std::exchange(answer.buffer, nullptr);
    answer.phase = Phase::waiting;
  } else {
    answer.phase = Phase::ready;
    // The bytes count only if the grant held until they had been read.
    if (!error && !find_grant_(answer.lease)) answer.status = Code::stale;
  }
  if (error) refuse(answer, *error);
  if (answer.status != Code{}) answer.bytes = 0;
  due_.push_back(&answer);
  return received;
}

void BounceResponder::lost(const BounceAnswer& answer, const Error& error) {
  if (answer.link == nullptr) return;
  BounceAnswer& told = begin(*answer.link, answer.rail, answer.operation);
  refuse(told, error);
  due_.push_back(&told);
}

std::size_t BounceResponder::progress() {
  ++core_.pass;
  std::size_t count = 0;
  for (std::size_t left = due_.size(); left > 0; --left) {
    BounceAnswer& answer = *due_.front();
    due_.pop_front();
    if (advance(answer))
      ++count;
    else
      due_.push_back(&answer);
  }
  return count;
}

/// Takes it as far as it gets now. False if it is to be tried again.
bool BounceResponder::advance(BounceAnswer& answer) {
  switch (answer.phase) {
    case Phase::waiting:
      if (answer.link == nullptr) break;
      if (!may_begin(answer)) return false;
      answer.buffer = core_.take_buffer();
      if (answer.buffer == nullptr) return false;
      answer.phase = Phase::ready;
      if (answer.status == Code{} && !answer.reads.empty()) read_out(answer);
      if (answer.phase == Phase::copying_out) return true;  // comes back when that has ended
      [[fallthrough]];
    case Phase::ready:
      if (answer.link == nullptr) break;
      return send(answer);
    case Phase::copying_in:
    case Phase::copying_out:
    case Phase::sent:
      return true;
  }
  release(answer);
  return true;
}

/// Whether the pause is over, if it did not arrive.
bool BounceResponder::may_begin(const BounceAnswer& answer) const {
  return answer.pause == Nanoseconds::zero() || Clock::now() >= answer.due;
}

/// False if the provider has no room for it.
bool BounceResponder::send(BounceAnswer& answer) {
  BounceLink& link = *answer.link;
  if (link.full_in == core_.pass) return false;
  const auto address = link.route.addresses.find(answer.rail);
  if (address == link.route.addresses.end()) {
    release(answer);
    return true;
  }
  Buffer& buffer = *answer.buffer;
  if (answer.status != Code{}) {
    answer.bytes = answer.why.size();
    std::memcpy(buffer.data + answer_head, answer.why.data(), answer.bytes);
  }
  const BounceHead head(link.peer->introduction.token, answer.operation, 0, answer.bytes,
                        core_.rail, static_cast<std::uint8_t>(BounceKind::answer),
                        static_cast<std::uint8_t>(answer.status), 0);
  std::memcpy(buffer.data, &head, sizeof head);
  buffer.handler = this;
  buffer.number = answer.number;
  const providers::Post post =
      core_.endpoint.send(buffer, {buffer.data, answer_head + answer.bytes, buffer.registration},
                          address->second.load(), providers::MessageClass::bounce);
  if (post.status == providers::PostStatus::again) {
    link.full_in = core_.pass;
    return false;
  }
  // An answer that can't be sent is left to the asker's deadline.
  if (post.status == providers::PostStatus::failed)
    release(answer);
  else
    answer.phase = Phase::sent;
  return true;
}

void BounceResponder::completed(providers::Posted& posted,
                                const providers::Completion& completion) {
  BounceAnswer& answer = *answers_.find(static_cast<Buffer&>(posted).number);
  if (completion.ok || answer.link == nullptr) return release(answer);
  send_again(answer);
}

/// It did not arrive. It is sent until it does or the peer goes.
void BounceResponder::send_again(BounceAnswer& answer) {
  constexpr Nanoseconds first = std::chrono::milliseconds(10), longest = std::chrono::seconds(1);
  core_.sends.put_back(*std::exchange(answer.buffer, nullptr));
  answer.bytes = 0;
  answer.pause = std::clamp<Nanoseconds>(2 * answer.pause, first, longest);
  answer.due = Clock::now() + answer.pause;
  answer.phase = Phase::waiting;
  due_.push_back(&answer);
}

void BounceResponder::peer_died(const BounceLink& link) {
  for (const std::uint64_t number :
       answers_.select([&](const BounceAnswer& each) { return each.link == &link; }))
    answers_.find(number)->link = nullptr;
  // Copies and sends that are under way end by themselves.
  std::erase_if(due_, [&](BounceAnswer* answer) {
    if (answer->link != nullptr) return false;
    release(*answer);
    return true;
  });
}

}  // namespace weft::core
