#include "rail/rail_scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

std::vector<Chunk> chunks_of(const Op& op) {
  std::vector<Chunk> chunks;
  op.each_chunk([&](const Chunk& chunk) { chunks.push_back(chunk); });
  return chunks;
}

/// The same, of which some bytes may have been moved.
std::vector<Chunk> touched(std::span<const Chunk> chunks) {
  std::vector<Chunk> made(chunks.begin(), chunks.end());
  for (Chunk& chunk : made) chunk.touched = true;
  return made;
}

}  // namespace

RailScheduler::RailScheduler(std::size_t rail, std::string rail_name, Window window,
                             Transport& one_sided, Transport& bounce, Transport& gpu_copies)
    : rail_(rail),
      rail_name_(std::move(rail_name)),
      window_(window),
      transports_{&one_sided, &bounce, &gpu_copies} {
  for (Transport* transport : transports_) transport->set_sink(*this);
}

RailScheduler::Way RailScheduler::way_of(const TransferState& transfer) {
  switch (transfer.submission().transport) {
    case TransportKind::bounce:
      return Way::bounce;
    case TransportKind::device_copy:
      return Way::device_copy;
    case TransportKind::automatic:
    case TransportKind::one_sided:
      break;
  }
  return Way::one_sided;
}

RailScheduler::Queues::iterator RailScheduler::queue_to(Route& route, Way way) {
  const auto [known, first] = queues_to_.try_emplace(&route);
  if (first)
    for (const Way each : {Way::one_sided, Way::bounce, Way::device_copy})
      known->second[index(each)] =
          resting_.emplace(resting_.end(), route, transport_of(each), each);
  return known->second[index(way)];
}

void RailScheduler::add_to(Queues::iterator queue, std::shared_ptr<TransferState> transfer) {
  queue->turns.add(std::move(transfer));
  if (std::exchange(queue->listed, true)) return;
  queues_.splice(queues_.end(), resting_, queue);
}

/// Null: this rail can't carry it.
Route* RailScheduler::living_route(const TransferState& transfer) const {
  Route* route = transfer.peer().route_by_rail[rail_];
  return route == nullptr || route->dead ? nullptr : route;
}

void RailScheduler::add(std::shared_ptr<TransferState> transfer) {
  Route* route = living_route(*transfer);
  if (route == nullptr) return;
  const Way way = way_of(*transfer);
  add_to(queue_to(*route, way), std::move(transfer));
}

void RailScheduler::begin(const std::shared_ptr<TransferState>& transfer, Clock::time_point now) {
  Route* route = living_route(*transfer);
  if (route == nullptr) return;
  const auto queue = queue_to(*route, way_of(*transfer));
  const bool alone = queues_.empty() && held_.empty();
  const bool urgent = transfer->submission().priority == Priority::latency;
  const Room room = alone ? this->room(*queue, urgent) : Room{};
  if (room.chunks == 0) return add_to(queue, transfer);
  now_ = now;
  switch (pull(*queue, *transfer, room).rest) {
    case Pulled::Rest::none:
      return;
    case Pulled::Rest::proof_later:
      return add_to(queue_to(*route, Way::bounce), transfer);
    case Pulled::Rest::some:
      // It may have been as many as there was room for.
      if (transfer->has_more(rail_)) add_to(queue, transfer);
  }
}

/// The rail carries nothing more of it.
void RailScheduler::forget(const TransferState& transfer) {
  const auto queues = queues_to_.find(transfer.peer().route_by_rail[rail_]);
  if (queues == queues_to_.end()) return;
  for (const auto& queue : queues->second) queue->turns.erase(transfer);
}

/// Those to a dead peer.
void RailScheduler::forget(const Route& route) {
  const auto queues = queues_to_.find(&route);
  if (queues == queues_to_.end()) return;
  for (const auto& queue : queues->second) (queue->listed ? queues_ : resting_).erase(queue);
  queues_to_.erase(queues);
}

std::size_t RailScheduler::pump(Clock::time_point now) {
  // Time in which this was not called says nothing about the provider.
  if (now - now_ > window_.patience / 4)
    for (Entry* op : held_) op->held_since = now;
  now_ = now;
  std::size_t posted = retry_held();
  Queues passed_over;
  while (!queues_.empty()) {
    const auto queue = queues_.begin();
    const std::uint64_t before = in_flight_;
    const bool had_turn = take_turn(*queue);
    posted += in_flight_ - before;
    queue->listed = !queue->turns.empty();
    Queues& next = !queue->listed ? resting_ : had_turn ? queues_ : passed_over;
    next.splice(next.end(), queues_, queue);
  }
  queues_ = std::move(passed_over);
  return posted;
}

/// What transports do after the scheduler and the endpoint's completions have given them work.
std::size_t RailScheduler::progress() {
  std::size_t done = transport_of(Way::bounce).progress();
  done += transport_of(Way::device_copy).progress();
  done += transport_of(Way::one_sided).progress();  // the reads of lease words, last
  return done;
}

/// False if there was no room for any of them.
bool RailScheduler::take_turn(Queue& queue) {
  if (queue.turns.empty()) return false;  // all that waited has left
  const Room room = this->room(queue, queue.turns.urgent());
  if (room.chunks == 0) {
    queue.turns.drop_ended();
    return false;
  }
  FairQueue::Turn turn = room.spare ? queue.turns.next_urgent() : queue.turns.next();
  const Pulled pulled = pull(queue, turn.transfer(), {turn.chunks(room.chunks), room.spare});
  if (pulled.rest == Pulled::Rest::proof_later)
    add_to(queue_to(queue.route, Way::bounce), turn.transfer().shared_from_this());
  turn.sent(pulled.cost);
  queue.turns.end(std::move(turn), pulled.rest == Pulled::Rest::some);
  return true;
}

/// `urgent`: one of class latency wants it.
RailScheduler::Room RailScheduler::room(const Queue& queue, bool urgent) const {
  // What was refused goes first.
  if (queue.route.held > 0) return {};
  const std::size_t chunks = room(queue.transport, queue.route);
  if (chunks > 0 || !urgent) return {chunks};
  return {spare_room(queue.transport, queue.route), true};
}

std::size_t RailScheduler::room(const Transport& transport, const Route& route) const {
  const std::uint64_t all = in_flight_ - spare_in_flight_;
  if (route.held > 0 || all >= window_.all_operations) return 0;
  const std::size_t chunks =
      chunks_within(route.operations - route.spare_operations, window_.operations,
                    route.bytes - route.spare_bytes, window_.bytes_to(route.same_host),
                    transport.chunk_limit(route));
  if (chunks == 0) return 0;
  return std::min({batch, chunks, window_.all_operations - all, transport.room(route)});
}

std::size_t RailScheduler::spare_room(const Transport& transport, const Route& route) const {
  const std::size_t chunks =
      chunks_within(route.spare_operations, window_.spare_operations, route.spare_bytes,
                    window_.spare_bytes, transport.chunk_limit(route));
  if (chunks == 0) return 0;
  return std::min({batch, chunks, transport.room(route)});
}

std::uint64_t RailScheduler::chunk_of(const TransferState& transfer, const Queue& queue) {
  return transfer.even_chunk(queue.transport.chunk_limit(queue.route));
}

std::size_t RailScheduler::chunks_of_turn(const TransferState& transfer, const Queue& queue) const {
  return chunks_a_turn(transfer.submission().bytes, transfer.takers(), chunk_of(transfer, queue),
                       batch);
}

RailScheduler::Pulled RailScheduler::pull(const Queue& queue, TransferState& transfer, Room room) {
  using Rest = Pulled::Rest;
  if (queue.way != way_of(transfer)) return {pull_proof(queue, transfer, room)};
  // A post goes to one target, which may not have the keys for all of several chunks.
  const bool together =
      queue.transport.most_chunks(queue.route) > 1 && transfer.submission().reach().complete();
  const Sent sent =
      together ? send_together(queue, transfer, room) : send_singly(queue, transfer, room);
  if (sent.posts == 0 && !sent.left) return {pull_proof(queue, transfer, room)};
  // What comes back of a transfer, and the proofs that it will owe, are offered anew.
  return {sent.left || sent.all ? Rest::none : Rest::some, sent.cost};
}

RailScheduler::Sent RailScheduler::send_singly(const Queue& queue, TransferState& transfer,
                                               Room room) {
  const std::uint64_t limit = chunk_of(transfer, queue);
  const TurnShare share = share_of_turn(transfer.submission().bytes, transfer.ranges(),
                                        transfer.takers(), limit, batch);
  const std::size_t most = std::min(room.chunks, share.posts);
  Sent sent;
  sent.posts = transfer.take(rail_, std::span(singly_).first(most), limit, share.bytes, now_);
  sent.all = sent.posts < most && !transfer.has_more(rail_);
  std::array<Op*, batch> ops;
  for (std::size_t i = 0; i < sent.posts; ++i) {
    sent.cost += FairQueue::cost_of(singly_[i].length);
    ops[i] = &make_op(transfer, queue.route, queue.transport, {&singly_[i], 1}, room.spare);
  }
  sent.left = !send_off(std::span(ops).first(sent.posts));
  return sent;
}

/// Each post as full as it may be: small chunks share what one costs.
RailScheduler::Sent RailScheduler::send_together(const Queue& queue, TransferState& transfer,
                                                 Room room) {
  const std::uint64_t limit = chunk_of(transfer, queue);
  const std::size_t most = std::min(room.chunks, chunks_of_turn(transfer, queue));
  together_.resize(queue.transport.most_chunks(queue.route));
  Sent sent;
  for (; sent.posts < most && !sent.left; ++sent.posts) {
    const Chunks chunks(together_.data(), transfer.take(rail_, together_, limit, limit, now_));
    if (chunks.empty()) break;
    std::uint64_t bytes = 0;
    for (const Chunk& each : chunks) bytes += each.length;
    sent.cost += FairQueue::cost_of(bytes);
    sent.left = !send_off(transfer, queue.route, queue.transport, chunks, room.spare);
  }
  sent.all = sent.posts < most;
  return sent;
}

/// A proof that chunks are visible goes through the bounce-buffer transport, since the target has
/// to answer; the word of a lease is read like other bytes, in the room that this turn has.
RailScheduler::Pulled::Rest RailScheduler::pull_proof(const Queue& queue, TransferState& transfer,
                                                      Room room) {
  using Rest = Pulled::Rest;
  const auto kind = transfer.owed_proof(rail_);
  if (!kind) return Rest::none;
  const bool answered = *kind == Chunk::Kind::arrival;
  if (answered && queue.way != Way::bounce)
    room = {this->room(transport_of(Way::bounce), queue.route)};
  if (room.chunks == 0) return Rest::proof_later;
  Chunk proof;
  if (!transfer.take_proof(rail_, *kind, proof)) return Rest::some;  // another may be owed
  Transport& transport = transport_of(answered ? Way::bounce : Way::one_sided);
  const bool sent = send_off(transfer, queue.route, transport, {&proof, 1}, room.spare);
  return sent && transfer.owed_proof(rail_) ? Rest::some : Rest::none;
}

/// False if this rail can't carry the transfer any more.
bool RailScheduler::send_off(TransferState& transfer, Route& route, Transport& transport,
                             Chunks chunks, bool spare) {
  Op* const op = &make_op(transfer, route, transport, chunks, spare);
  return send_off({&op, 1});
}

/// Posts a batch of one transfer; holds the first op that is refused and all after it.
bool RailScheduler::send_off(std::span<Op* const> ops) {
  bool carries = true;
  while (!ops.empty() && ops.front()->route->held == 0) {
    for (Op* op : ops) entry(*op).out = true;  // before: some end at once
    const auto [posted, refusal] = entry(*ops.front()).transport->post_all(ops);
    ops = ops.subspan(posted);
    for (Op* op : ops) entry(*op).out = false;
    if (ops.empty() || refusal.status == providers::PostStatus::again) break;
    post_failed(entry(*ops.front()), refusal);
    ops = ops.subspan(1);
    carries = false;
  }
  for (Op* op : ops) {
    entry(*op).held_since = now_;
    hold(entry(*op));
  }
  return carries;
}

/// Hands chunks back that this rail can't carry, and nothing else of the transfer.
void RailScheduler::leave(TransferState& transfer, Chunks chunks, const Error& why) {
  const auto alive = transfer.shared_from_this();
  forget(transfer);
  transfer.rail_leaves(rail_, why);
  transfer.give_back(chunks);
}

RailScheduler::Fate RailScheduler::try_post(Entry& op) {
  op.out = true;  // before: some end at once
  const providers::Post post = op.transport->post(op);
  if (post.status != providers::PostStatus::posted) op.out = false;
  switch (post.status) {
    case providers::PostStatus::posted:
      return Fate::posted;
    case providers::PostStatus::again:
      return Fate::held;
    case providers::PostStatus::failed:
      break;
  }
  post_failed(op, post);
  return Fate::failed;
}

void RailScheduler::hold(Entry& op) {
  ++op.route->held;
  held_.push_back(&op);
}

/// Posts the ops that were refused, in order for each peer: there may be room for one peer and not
/// for another.
std::size_t RailScheduler::retry_held() {
  if (held_.empty()) return 0;
  const std::deque<Entry*> waiting = std::exchange(held_, {});
  for (const Op* op : waiting) op->route->held = 0;
  std::size_t posted = 0;
  for (Entry* each : waiting) {
    Entry& op = *each;
    const bool wanted = !op.transfer->stopped() && !op.route->dead;
    if (!wanted) {
      return_unsent(op);
      continue;
    }
    const Fate fate = op.route->held == 0 ? try_post(op) : Fate::held;
    if (fate == Fate::held && !passed_on(op)) hold(op);
    if (fate != Fate::posted) continue;
    op.route->moved_at = now_;
    ++posted;
  }
  return posted;
}

/// Only this rail can prove the arrival of what it has carried.
bool RailScheduler::bound(const TransferState& transfer, const Chunk& chunk) {
  return chunk.kind == Chunk::Kind::arrival && !transfer.prepared().contact;
}

/// Whether other rails take what this one has had no room for, in all its patience: while a peer
/// does not answer its first packets, efa (1.17) has no room, and tells nothing else.
bool RailScheduler::passed_on(Entry& op) {
  Route& route = *op.route;
  const Nanoseconds waited = now_ - std::max(op.held_since, route.moved_at);
  if (!route.in_doubt() && waited < window_.patience) return false;
  if (!op.transport->properties().on_rail || bound(*op.transfer, op.chunk)) return false;
  TransferState& transfer = *op.transfer;
  if (!transfer.rail_steps_back(rail_)) return false;
  set_aside(route, transfer.peer(), Error(Code::timed_out, "it has had no room for operations"));
  const auto alive = transfer.shared_from_this();
  forget(transfer);
  return_unsent(op);
  return true;
}

/// The op is held: the provider has never had it.
void RailScheduler::return_unsent(Entry& op) {
  TransferState& transfer = *op.transfer;
  const std::vector<Chunk> chunks = chunks_of(op);
  op.transport->give_up(op);
  free_op(op);
  transfer.give_back(chunks);
}

/// A refused post was certainly not carried out: other rails may take the chunks, this one leaves
/// the transfer.
void RailScheduler::post_failed(Entry& op, const providers::Post& post) {
  const auto transfer = op.transfer->shared_from_this();
  providers::Completion refused;
  refused.fabric_code = post.fabric_code;
  const Error error = error_of(op, refused);
  const std::vector<Chunk> chunks = chunks_of(op);
  free_op(op);
  if (!bound(*transfer, chunks.front())) return leave(*transfer, chunks, error);
  forget(*transfer);
  transfer->failed(chunks.front(), error);
}

/// The path to the peer broke: nothing more of the operation is sent, and what has arrived are
/// bytes that another NIC may write once more. This one is left alone for a while.
void RailScheduler::path_failed(TransferState& transfer, Route& route, Chunks chunks,
                                const Error& error) {
  set_aside(route, transfer.peer(), error);
  leave(transfer, touched(chunks), error);
}

/// Whether chunks that came to nothing may be carried once more.
bool RailScheduler::may_repeat(const Entry& op) {
  const bool write = op.transfer->prepared().direction == Direction::write;
  return !write || op.chunk.proof() || op.transport->properties().repeats_writes;
}

/// The endpoint was closed under it, and nothing more of it will be sent. Where that was done
/// because nothing came through, others had better carry it.
void RailScheduler::cut(TransferState& transfer, Route& route, Chunks chunks, const Error& error) {
  const bool stays = bound(transfer, chunks.front());
  const auto alive = transfer.shared_from_this();
  if (!stays && route.in_doubt() && transfer.rail_steps_back(rail_)) {
    set_aside(route, transfer.peer(), error);
    forget(transfer);
  }
  transfer.give_back(touched(chunks));
}

void RailScheduler::went_silent() {
  for (const Entry& op : ops_)
    if (op.out && !op.route->dead && op.transport->properties().on_rail)
      set_aside(*op.route, op.transfer->peer(),
                Error(Code::timed_out, "operations neither end nor fail"));
}

void RailScheduler::timed_out(const TransferState& transfer) {
  const auto out = std::find_if(ops_.begin(), ops_.end(), [&](const Entry& op) {
    return op.transfer == &transfer && op.out && op.transport->properties().on_rail &&
           op.transport->went_out(op);
  });
  if (out == ops_.end() || out->route->dead) return;
  set_aside(*out->route, transfer.peer(),
            Error(Code::timed_out, "operations neither ended nor failed in their time"));
}

void RailScheduler::chunk_ended(Op& ended, const providers::Completion& completion) {
  Entry& op = entry(ended);
  if (!completion.ok) return failed(op, completion);
  TransferState& transfer = *op.transfer;
  const Chunk chunk = op.chunk;
  const std::vector<Chunk> others = op.others;
  Route& route = *op.route;
  const bool spare = op.spare;
  route.works();
  route.moved_at = now_;
  if (op.transport->properties().on_rail) {
    operations_done_ += op.chunks();
    bytes_done_ += op.bytes();
  }
  free_op(op);
  for (const Chunk& other : others) transfer.completed(rail_, other);
  const auto proof = transfer.completed(rail_, chunk);
  if (!proof) return;
  if (route.dead) return transfer.give_back(*proof);
  // In the place that has just become free.
  send_off(transfer, route, transport_of(Way::one_sided), {&*proof, 1}, spare);
}

void RailScheduler::failed(Entry& op, const providers::Completion& completion) {
  TransferState& transfer = *op.transfer;
  Route& route = *op.route;
  const Error error = error_of(op, completion);
  const std::vector<Chunk> chunks = chunks_of(op);
  const bool again = !route.dead && !transfer.ended() && may_repeat(op);
  free_op(op);
  if (completion.unsent && !route.dead) {
    return transfer.stopped() ? transfer.give_back(chunks) : leave(transfer, chunks, error);
  }
  if (again && completion.cut) return cut(transfer, route, chunks, error);
  const bool leaves = completion.path_failed && !bound(transfer, chunks.front());
  if (again && leaves) return path_failed(transfer, route, chunks, error);
  if (leaves && !route.dead) set_aside(route, transfer.peer(), error);
  for (const Chunk& chunk : chunks) transfer.failed(chunk, error);
}

void RailScheduler::peer_died(Route& route) {
  route.dead = true;
  in_flight_ -= route.operations;
  spare_in_flight_ -= route.spare_operations;
  lost_ += route.operations;
  for (Transport* transport : transports_) transport->peer_died(route);
  retry_held();
  forget(route);
}

RailScheduler::Orphans RailScheduler::take_orphans() {
  Orphans orphans;
  for (Op& op : ops_) {
    if (op.transfer == nullptr) continue;
    for (const Chunk& chunk : touched(chunks_of(op)))
      orphans.emplace_back(op.transfer->shared_from_this(), chunk);
  }
  return orphans;
}

Op& RailScheduler::make_op(TransferState& transfer, Route& route, Transport& transport,
                           Chunks chunks, bool spare) {
  if (free_ops_.empty()) free_ops_.push_back(&ops_.emplace_back());
  Entry& op = *free_ops_.back();
  free_ops_.pop_back();
  op.transfer = &transfer;
  op.route = &route;
  op.transport = &transport;
  op.chunk = chunks.front();
  op.others.assign(chunks.begin() + 1, chunks.end());
  op.spare = spare;
  ++in_flight_;
  ++route.operations;
  const std::uint64_t bytes = op.bytes();
  route.bytes += bytes;
  if (spare) {
    ++spare_in_flight_;
    ++route.spare_operations;
    route.spare_bytes += bytes;
  }
  return op;
}

void RailScheduler::free_op(Entry& op) {
  const std::uint64_t bytes = op.bytes();
  --op.route->operations;
  op.route->bytes -= bytes;
  if (op.spare) {
    --op.route->spare_operations;
    op.route->spare_bytes -= bytes;
  }
  if (op.route->dead) {
    --lost_;
  } else {
    --in_flight_;
    if (op.spare) --spare_in_flight_;
  }
  op.transfer = nullptr;
  op.others.clear();
  op.out = false;
  free_ops_.push_back(&op);
}

Error RailScheduler::error_of(const Op& op, const providers::Completion& completion) const {
  const int fabric_code = completion.fabric_code;
  const char* operation = op.transfer->prepared().direction == Direction::write ? "write" : "read";
  const PeerState& peer = op.transfer->peer();
  Code code = Code::fabric_failed;
  std::string reason = providers::fabric_text(fabric_code);
  if (!peer.up()) {
    code = Code::peer_down;
    reason = "the peer went down";
  } else if (completion.refusal != Code{}) {
    code = completion.refusal;
    reason = completion.text;
  } else if (!completion.text.empty()) {
    reason += fmt::format(" ({})", completion.text);
  }
  std::string what = op.chunk.proof() ? fmt::format("proving that a {} counts", operation)
                                      : fmt::format("a {} of {} bytes", operation, op.bytes());
  return Error(code, fmt::format("{} failed: {}", what, reason))
      .with_peer(peer.introduction.name)
      .with_rail(rail_name_)
      .with_operation(operation)
      .with_fabric_code(fabric_code);
}

}  // namespace weft::core
