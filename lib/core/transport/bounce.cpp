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

/// In the peer's words, if it has said why.
std::string why_refused(Code status, const BounceMessage& message) {
  const auto said = text_of(message);
  return said.empty() ? fmt::format("the peer refused: {}", to_string(status))
                      : fmt::format("the peer refused: {}: {}", to_string(status), said);
}

Priority priority_of(const Op& op) {
  return op.transfer->submission().priority;
}

const Device& device_of(const Op& op) {
  return op.transfer->prepared().local->device();
}

}  // namespace

Bounce::Bounce(providers::Endpoint& endpoint, std::uint32_t rail, Limits limits,
               FindGrant find_grant, FlushArrived flush, Tell tell)
    // What a peer has not copied yet when the rail is closed, it may copy at any time later.
    : Transport({.repeats_writes = false}),
      limits_(limits),
      // Apart from what peers send requests to, so that no rail keeps back what another waits for
      // while it waits for that one.
      most_answers_(limits.most - limits.most / 2),
      core_{endpoint, rail,
            BufferPool(endpoint, bounce_message(limits.buffer_bytes), limits.buffers, answer_head),
            limits.most},
      receives_(endpoint, "bounce", providers::MessageClass::bounce, core_.sends.buffer_bytes(),
                limits.buffers, limits.most, *this, answer_head),
      lanes_(receives_, rail, {limits.buffers, limits.most - most_answers_}, std::move(tell)),
      responder_(core_, limits.buffer_bytes, std::move(find_grant), std::move(flush)) {}

Result<void> Bounce::serve(const Device& device) {
  auto served = core_.staging.serve(device);
  if (!served || device.kind() != MemoryKind::device) return served;  // others pin nothing
  return receives_.pin(device).and_then([&] { return core_.sends.pin(device); });
}

void Bounce::add_peer(const std::shared_ptr<PeerState>& peer, Route& route,
                      std::uint64_t own_token) {
  const Introduction& theirs = peer->introduction;
  const auto bytes = std::min<std::uint64_t>(limits_.buffer_bytes, theirs.bounce_buffer_bytes);
  const auto credits =
      std::min<std::size_t>({limits_.buffers, theirs.bounce_buffers, most_answers_});
  const auto [link, first] = links_.try_emplace(
      own_token, BounceLink{peer, route, credits, 0, bytes, bounce_pieces(bytes)});
  route.bounce = &link->second;
}

void Bounce::hear(Route& route, const BounceCredits& credits) {
  BounceLink* const link = route.bounce;
  if (link == nullptr) return;
  if (!lanes_.hear(*link, credits)) refused(*link, credits.giver);
  // Before the peer may want back what it has given.
  if (credits.step == BounceCredits::Step::given) start_waiting();
}

/// Those end that wait for a lane to there.
void Bounce::refused(const BounceLink& link, std::uint32_t theirs) {
  std::vector<BounceRequest*> over;
  std::erase_if(waiting_, [&](BounceRequest* each) {
    const bool refused = each->link == &link && each->target->index == theirs;
    if (refused) over.push_back(each);
    return refused;
  });
  for (BounceRequest* each : over)
    end(*each, failure(Code::unavailable, "the peer has no memory for bounce buffers"));
}

void Bounce::tidy() {
  for (auto& [token, link] : links_) lanes_.tidy(link);
  receives_.tidy();
  core_.sends.tidy(0);
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
    request = &begin(op);
    if (start(*request) != Start::begun) {
      waiting_.push_back(request);
      return {providers::PostStatus::posted, 0};
    }
    if (writes(op) && !fill(*request)) return {providers::PostStatus::posted, 0};
  }
  const providers::Post post = send(*request);
  switch (post.status) {
    case providers::PostStatus::posted:
      request->phase = Phase::sent;
      request->buffer = nullptr;
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

bool Bounce::went_out(const Op& op) const {
  return std::none_of(waiting_.begin(), waiting_.end(),
                      [&](const BounceRequest* each) { return each->op == &op; });
}

BounceRequest& Bounce::begin(Op& op) {
  Targets& targets = op.transfer->prepared().path->of(core_.rail)->targets;
  BounceRequest& request = requests_.take();
  request.op = &op;
  request.link = op.route->bounce;
  request.target = op.chunk.proof() ? &targets[op.chunk.remote] : &targets.take_turn();
  request.in_lane = false;
  request.phase = Phase::waiting;
  request.buffer = nullptr;
  ++request.link->credits_used;
  return request;
}

/// Writes it into a buffer, once there are a credit for it and a receive for its answer.
Bounce::Start Bounce::start(BounceRequest& request) {
  if (answers_ == most_answers_ || !core_.has_buffer() || !enter_lane(request)) return Start::waits;
  const auto promised = receives_.promise(1);
  if (promised) {
    ++answers_;
    request.in_lane = true;
    if (Buffer* const buffer = core_.take_buffer()) {
      write_out(request, *buffer);
      return Start::begun;
    }
    leave_lane(request);
  } else {
    lanes_.put_back(*request.link, request.target->index);
  }
  return answers_ > 0 ? Start::waits : Start::no_memory;
}

/// Takes a credit. A proof must go to its rail, and the rest may go to any of them.
bool Bounce::enter_lane(BounceRequest& request) {
  const Op& op = *request.op;
  BounceLink& link = *request.link;
  if (lanes_.take(link, request.target->index)) return true;
  const Targets& targets = op.transfer->prepared().path->of(core_.rail)->targets;
  for (std::size_t i = 0; i < targets.size() && !op.chunk.proof(); ++i)
    if (lanes_.take(link, targets[i].index)) {
      request.target = &targets[i];
      return true;
    }
  // Each of them has its share of what may be under way to the peer.
  lanes_.ask(link, request.target->index, (link.credits + targets.size() - 1) / targets.size());
  return false;
}

std::size_t Bounce::start_waiting() {
  std::size_t count = 0;
  for (std::size_t left = waiting_.size(); left > 0; --left) {
    BounceRequest& request = *waiting_.front();
    waiting_.pop_front();
    const Start outcome = request.op->transfer->stopped() ? Start::unwanted : start(request);
    if (outcome == Start::waits) {
      waiting_.push_back(&request);
      continue;
    }
    ++count;
    if (outcome == Start::unwanted)
      end_unsent(request, 0);
    else if (outcome == Start::no_memory)
      end(request, failure(Code::out_of_memory, "there is no memory for bounce buffers"));
    else if (!writes(*request.op) || fill(request))
      ready_.push_back(&request);
  }
  return count;
}

void Bounce::give_up(Op& op) {
  if (BounceRequest* request = std::exchange(op.request, nullptr)) release(*request);
}

/// The head and the list of pieces.
void Bounce::write_out(BounceRequest& request, Buffer& buffer) {
  const Op& op = *request.op;
  const std::size_t pieces = op.chunk.proof() ? 0 : op.chunks();
  const auto kind =
      op.chunk.proof() ? BounceKind::proof : (writes(op) ? BounceKind::write : BounceKind::read);
  const BounceHead head(op.transfer->peer().introduction.token, request.number,
                        op.transfer->prepared().remote->description().lease, op.bytes(), core_.rail,
                        static_cast<std::uint8_t>(kind), code_of(priority_of(op)),
                        static_cast<std::uint16_t>(pieces));
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
  request.phase = Phase::ready;
  request.buffer = &buffer;
  request.bytes = list_bytes(pieces) + (writes(op) ? op.bytes() : 0);
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
  request.phase = Phase::copying_out;
  const auto begun =
      core_.staging.copy_out(device, core_.copies.list(), priority_of(op), {&request, nullptr});
  if (begun) {
    op.transfer->count_copied(op.bytes());
  } else {
    drop_buffer(request);
    end(request, failure(begun.error().code(), begun.error().message()));
  }
  return false;
}

providers::Post Bounce::send(const BounceRequest& request) {
  Buffer& buffer = *request.buffer;
  return core_.endpoint.send(buffer,
                             {buffer.data, sizeof(BounceHead) + request.bytes, buffer.registration},
                             request.target->address(), providers::MessageClass::bounce);
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
      if (post.status == providers::PostStatus::posted) {
        request.phase = Phase::sent;
        request.buffer = nullptr;
      }
      if (post.status == providers::PostStatus::failed) end_unsent(request, post.fabric_code);
      if (post.status != providers::PostStatus::again) return true;
      request.link->full_in = core_.pass;
      return false;
    }
    case Phase::sent:
    case Phase::copying_in:
      end(request, {});
      return true;
    case Phase::held:     // post() goes on with it
    case Phase::waiting:  // start_waiting() does
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
        if (staged.answer != nullptr) return responder_.lost(*staged.answer, error);
        staged.request->op->transfer->end_early(State::failed, error);
      });
  if (!waiting_.empty()) count += start_waiting();
  if (!ready_.empty()) count += send_ready();
  if (responder_.has_work()) count += responder_.progress();
  return count;
}

std::size_t Bounce::send_ready() {
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
    receives_.post(*std::exchange(request.buffer, nullptr));
  else if (!goes_on)
    drop_buffer(request);
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
  const auto to_it = [&](const BounceRequest* each) { return each->link == link; };
  std::erase_if(waiting_, to_it);
  std::erase_if(ready_, [&](BounceRequest* each) {
    if (!to_it(each)) return false;
    drop_buffer(*each);
    return true;
  });
  for (const std::uint64_t number :
       requests_.select([&](const BounceRequest& each) { return each.link == link; })) {
    BounceRequest* const request = requests_.find(number);
    if (request == nullptr) continue;
    request->link = nullptr;
    // Those that a device copies for end when nothing touches their memory any more.
    if (request->phase == Phase::waiting || request->phase == Phase::ready ||
        request->phase == Phase::sent)
      end(*request, peer_is_gone());
  }
  lanes_.forget(*link);
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
    end(*request, failure(status, why_refused(status, message)));
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
  const auto begun =
      core_.staging.copy_in(device, core_.copies.list(), priority_of(op), {&request, nullptr});
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
  drop_buffer(request);
  providers::Completion unsent;
  unsent.ok = false;
  unsent.unsent = true;
  unsent.fabric_code = fabric_code;
  end(request, unsent);
}

/// Its credit comes back, and the sink learns of it.
void Bounce::end(BounceRequest& request, const providers::Completion& completion) {
  Op& op = *request.op;
  leave(request);
  sink().chunk_ended(op, completion);
}

/// It was never under way.
void Bounce::release(BounceRequest& request) {
  drop_buffer(request);
  leave(request);
}

void Bounce::leave(BounceRequest& request) {
  leave_lane(request);
  if (request.link != nullptr) --request.link->credits_used;
  requests_.release(request);
}

void Bounce::leave_lane(BounceRequest& request) {
  if (!std::exchange(request.in_lane, false)) return;
  receives_.release(1);
  --answers_;
  if (request.link != nullptr) lanes_.put_back(*request.link, request.target->index);
}

void Bounce::drop_buffer(BounceRequest& request) {
  if (Buffer* buffer = std::exchange(request.buffer, nullptr)) core_.sends.put_back(*buffer);
}

}  // namespace weft::core
