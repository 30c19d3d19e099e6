#include "transport/bounce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "peer/peer_state.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

using wire::BounceHead;
using wire::BouncePiece;

/// `text` must outlive the completion.
providers::Completion failure(Code code, std::string_view text) {
  providers::Completion failed;
  failed.ok = false;
  failed.refusal = code;
  failed.text = text;
  return failed;
}

providers::Completion peer_is_gone() {
  return failure(Code::peer_down, "the peer went down");
}

bool writes(const Op& op) {
  return op.transfer->prepared().direction == Direction::write && !op.chunk.proof();
}

bool reads(const Op& op) {
  return op.transfer->prepared().direction == Direction::read && !op.chunk.proof();
}

const Device& device_of(const Op& op) {
  return op.transfer->prepared().local->device();
}

}  // namespace

Bounce::Bounce(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits,
               FindGrant find_grant, FlushArrived flush)
    // What a peer has not copied yet when the rail is closed, it may copy at any time later.
    : Transport({.repeats_writes = false}),
      limits_(limits),
      core_{endpoint, rail, BufferPool(endpoint, bounce_message(limits.buffer_bytes))},
      receives_(endpoint, "bounce", providers::MessageClass::bounce, core_.sends.buffer_bytes(),
                *this),
      responder_(core_, limits.buffer_bytes, std::move(find_grant), std::move(flush)) {}

Result<void> Bounce::serve(const Device& device) {
  return core_.staging.serve(device).and_then([&] { return receives_.pin(device); }).and_then([&] {
    return core_.sends.pin(device);
  });
}

Result<void> Bounce::add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                              std::uint64_t own_token) {
  // For requests from each of the peer's rails that send here, and for answers to our own.
  const std::size_t receives = (route.sources + 1) * limits_.buffers;
  const auto added = receives_.add(receives);
  if (!added) return fail(added.error());
  if (auto grown = core_.sends.grow(*added); !grown) {
    receives_.release(receives);
    return grown;
  }
  const Introduction& theirs = peer->introduction;
  const auto bytes = std::min<std::uint64_t>(limits_.buffer_bytes, theirs.bounce_buffer_bytes);
  const auto credits = std::min<std::size_t>(limits_.buffers, theirs.bounce_buffers);
  const auto [link, first] = links_.try_emplace(
      own_token, BounceLink{peer, route, receives, credits, 0, bytes, bounce_pieces(bytes)});
  route.bounce = &link->second;
  return {};
}

std::uint64_t Bounce::chunk_limit(const Route& route) const {
  return route.bounce == nullptr ? 1 : std::max<std::uint64_t>(1, route.bounce->request_bytes);
}

std::size_t Bounce::most_chunks(const Route& route) const {
  return route.bounce == nullptr ? 1 : route.bounce->request_pieces;
}

std::size_t Bounce::room(const Route& route) const {
  const BounceLink* const link = route.bounce;
  return link == nullptr ? 0 : link->credits - std::min(link->credits, link->credits_used);
}

providers::Post Bounce::post(Op& op) {
  BounceRequest* request = std::exchange(op.request, nullptr);
  if (request == nullptr) {
    Buffer* const buffer = core_.sends.take();
    if (buffer == nullptr) return {providers::PostStatus::again, 0};
    request = &write_out(op, *buffer);
    if (writes(op) && !fill(*request)) return {providers::PostStatus::posted, 0};
  }
  const providers::Post post = send(*request);
  switch (post.status) {
    case providers::PostStatus::posted:
      ++request->link->credits_used;
      request->phase = Phase::sent;
      break;
    case providers::PostStatus::again:
      // The buffer stays filled: else it would be filled once more for each time that there is no
      // room.
      request->phase = Phase::held;
      op.request = request;
      break;
    case providers::PostStatus::failed:
      release(*request);
      break;
  }
  return post;
}

void Bounce::give_up(Op& op) {
  if (BounceRequest* request = std::exchange(op.request, nullptr)) release(*request);
}

/// The head and the list of pieces.
BounceRequest& Bounce::write_out(Op& op, Buffer& buffer) {
  BounceRequest& request = requests_.take();
  const std::size_t pieces = op.chunk.proof() ? 0 : op.chunks();
  const auto kind =
      op.chunk.proof() ? BounceKind::proof : (writes(op) ? BounceKind::write : BounceKind::read);
  const BounceHead head(op.transfer->peer().introduction.token, request.number,
                        op.transfer->prepared().remote->description().lease, op.bytes(), core_.rail,
                        static_cast<std::uint8_t>(kind), 0, static_cast<std::uint16_t>(pieces));
  std::memcpy(buffer.data, &head, sizeof head);
  std::byte* to = buffer.data + sizeof head;
  if (pieces > 0)
    op.each_chunk([&](const Chunk& chunk) {
      const BouncePiece piece(chunk.remote, chunk.length);
      std::memcpy(to, &piece, sizeof piece);
      to += sizeof piece;
    });
  buffer.handler = this;
  buffer.number = request.number;
  request.op = &op;
  request.link = op.route->bounce;
  request.phase = Phase::ready;
  request.buffer = &buffer;
  request.bytes = list_bytes(pieces) + (writes(op) ? op.bytes() : 0);
  return request;
}

/// Between its chunks, one after the other in a buffer, and this side's memory.
void Bounce::list_copies(Way way, const Op& op, std::byte* buffer) {
  std::byte* const memory = op.transfer->prepared().local->address();
  core_.copies.begin(way, buffer);
  op.each_chunk([&](const Chunk& chunk) { core_.copies.add(memory + chunk.local, chunk.length); });
}

/// With what is to be written. False if a device does that, and the request is sent when it has; or
/// if that could not even begin, and the request has ended.
bool Bounce::fill(BounceRequest& request) {
  Op& op = *request.op;
  const Device& device = device_of(op);
  list_copies(Way::out_of_memory, op,
              request.buffer->data + sizeof(BounceHead) + list_bytes(op.chunks()));
  if (device.direct()) {
    core_.copies.copy(device);
    op.transfer->count_copied(op.bytes());
    return true;
  }
  ++request.link->credits_used;
  request.phase = Phase::copying_out;
  const auto begun = core_.staging.copy_out(device, core_.copies.list(), {&request, nullptr});
  if (begun) {
    op.transfer->count_copied(op.bytes());
  } else {
    core_.sends.put_back(*request.buffer);
    end(request, failure(begun.error().code(), begun.error().message()));
  }
  return false;
}

providers::Post Bounce::send(const BounceRequest& request) {
  const Op& op = *request.op;
  Targets& targets = op.transfer->prepared().path->of(core_.rail)->targets;
  const RemoteRail& target = op.chunk.proof() ? targets[op.chunk.remote] : targets.take_turn();
  Buffer& buffer = *request.buffer;
  return core_.endpoint.send(buffer,
                             {buffer.data, sizeof(BounceHead) + request.bytes, buffer.registration},
                             target.address(), providers::MessageClass::bounce);
}

/// Takes it one step further, after the step that its phase names has ended. False if the provider
/// has no room for it.
bool Bounce::advance(BounceRequest& request) {
  switch (request.phase) {
    case Phase::copying_out:
      request.phase = Phase::ready;
      ready_.push_back(&request);
      return true;
    case Phase::ready: {
      if (request.op->transfer->stopped()) {
        end_unsent(request, 0);
        return true;
      }
      if (request.link->full_in == core_.pass) return false;
      const providers::Post post = send(request);
      if (post.status == providers::PostStatus::posted) request.phase = Phase::sent;
      if (post.status == providers::PostStatus::failed) end_unsent(request, post.fabric_code);
      if (post.status != providers::PostStatus::again) return true;
      request.link->full_in = core_.pass;
      return false;
    }
    case Phase::sent:
    case Phase::copying_in:
      end(request, {});
      return true;
    case Phase::held:  // post() goes on with it
      return true;
  }
  return true;
}

std::size_t Bounce::progress() {
  receives_.progress();
  std::size_t count = core_.staging.progress(
      [this](BounceStaged staged, const auto& error) {
        if (staged.request != nullptr) return copied(*staged.request, error);
        if (Buffer* received = responder_.copied(*staged.answer, error)) receives_.post(*received);
      },
      // Nothing tells whether the copy has ended: chunk, grant and buffer are held from here on.
      [this](const BounceStaged& staged, const Error& error) {
        if (staged.answer != nullptr) return responder_.lost(*staged.answer);
        staged.request->op->transfer->end_early(State::failed, error);
      });
  if (!ready_.empty()) count += send_waiting();
  if (responder_.has_work()) count += responder_.progress();
  return count;
}

std::size_t Bounce::send_waiting() {
  ++core_.pass;
  std::size_t count = 0;
  for (std::size_t left = ready_.size(); left > 0; --left) {
    BounceRequest& request = *ready_.front();
    ready_.pop_front();
    if (advance(request))
      ++count;
    else
      ready_.push_back(&request);
  }
  return count;
}

/// A device's copy for it has ended; with an error if it could not be carried out.
void Bounce::copied(BounceRequest& request, const std::optional<Error>& error) {
  const bool goes_on = !error && request.link != nullptr;
  if (request.phase == Phase::copying_in)
    receives_.post(*request.buffer);
  else if (!goes_on)
    core_.sends.put_back(*request.buffer);
  if (goes_on)
    advance(request);
  else if (request.link == nullptr)
    end(request, peer_is_gone());
  else
    end(request, failure(error->code(), error->message()));
}

bool Bounce::settle(Deadline deadline) {
  return core_.staging.settle(deadline, [](const BounceStaged& staged, const auto&) {
    if (staged.answer != nullptr) staged.answer->grant->copying().leave();
  });
}

void Bounce::keep_buffers() {
  receives_.leak();
  core_.sends.leak();
}

void Bounce::peer_died(Route& route) {
  BounceLink* const link = std::exchange(route.bounce, nullptr);
  if (link == nullptr) return;
  responder_.peer_died(*link);
  std::erase_if(ready_, [&](const BounceRequest* each) {
    if (each->link != link) return false;
    core_.sends.put_back(*each->buffer);
    return true;
  });
  for (const std::uint64_t number :
       requests_.select([&](const BounceRequest& each) { return each.link == link; })) {
    BounceRequest* const request = requests_.find(number);
    if (request == nullptr) continue;
    request->link = nullptr;
    // Those that a device copies for end when nothing touches their memory any more.
    if (request->phase == Phase::ready || request->phase == Phase::sent)
      end(*request, peer_is_gone());
  }
  receives_.release(link->receives);
  std::erase_if(links_, [&](const auto& each) { return &each.second == link; });
}

void Bounce::cut(const Route& route) {
  providers::Completion cut;
  cut.ok = false;
  cut.cut = true;
  cut.text = "a rail was closed and opened again";
  for (const std::uint64_t number : requests_.select([&](const BounceRequest& each) {
         return each.link != nullptr && &each.link->route == &route && each.phase == Phase::sent;
       }))
    if (BounceRequest* request = requests_.find(number)) end(*request, cut);
}

/// The post of a request has ended. The request itself ends when it is answered.
void Bounce::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& buffer = static_cast<Buffer&>(posted);
  core_.sends.put_back(buffer);
  BounceRequest* const request = completion.ok ? nullptr : requests_.find(buffer.number);
  if (request != nullptr && request->phase == Phase::sent) end(*request, completion);
}

Received Bounce::arrived(Buffer& buffer, std::size_t length) {
  const auto message = BounceMessage::read(buffer.data, length);
  if (!message) return Received::free;
  const auto link = links_.find(message->head.token());
  // A peer that is gone, or a stranger.
  if (link == links_.end()) return Received::free;
  switch (message->kind()) {
    case BounceKind::write:
    case BounceKind::read:
    case BounceKind::proof:
      return responder_.requested(link->second, buffer, *message);
    case BounceKind::answer:
      return answered(link->second, buffer, *message);
  }
  return Received::free;
}

Received Bounce::answered(BounceLink& link, Buffer& buffer, const BounceMessage& message) {
  BounceRequest* const request = requests_.find(message.head.operation());
  // An answer to a request that was not sent, or was answered before.
  if (request == nullptr || request->link != &link || request->phase != Phase::sent)
    return Received::free;
  const Op& op = *request->op;
  auto status = static_cast<Code>(message.head.status());
  if (status == Code{} && message.behind.size() != (reads(op) ? op.bytes() : 0))
    status = Code::protocol_mismatch;
  if (status != Code{})
    end(*request, failure(status, fmt::format("the peer refused: {}", to_string(status))));
  else if (reads(op))
    return read_in(*request, buffer, message);
  else
    advance(*request);
  return Received::free;
}

Received Bounce::read_in(BounceRequest& request, Buffer& buffer, const BounceMessage& message) {
  const Op& op = *request.op;
  const Device& device = device_of(op);
  list_copies(Way::into_memory, op, message.behind.data());
  op.transfer->count_copied(op.bytes());
  if (device.direct()) {
    core_.copies.copy(device);
    advance(request);
    return Received::free;
  }
  const auto begun = core_.staging.copy_in(device, core_.copies.list(), {&request, nullptr});
  if (begun) {
    request.phase = Phase::copying_in;
    request.buffer = &buffer;
    return Received::kept;
  }
  end(request, failure(begun.error().code(), begun.error().message()));
  return Received::free;
}

/// Nothing of it was sent, and nothing will be.
void Bounce::end_unsent(BounceRequest& request, int fabric_code) {
  core_.sends.put_back(*request.buffer);
  providers::Completion unsent;
  unsent.ok = false;
  unsent.unsent = true;
  unsent.fabric_code = fabric_code;
  end(request, unsent);
}

/// Its credit comes back, and the sink learns of it.
void Bounce::end(BounceRequest& request, const providers::Completion& completion) {
  Op& op = *request.op;
  if (request.link != nullptr) --request.link->credits_used;
  requests_.release(request);
  sink().chunk_ended(op, completion);
}

/// It was never under way.
void Bounce::release(BounceRequest& request) {
  core_.sends.put_back(*request.buffer);
  requests_.release(request);
}

}  // namespace weft::core
