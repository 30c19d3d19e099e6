#include "rail/lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "peer/peer_state.hpp"

namespace weft::core {
namespace {

// Chunks taken from one transfer before the next one has its turn. Few, so that lanes share a
// transfer evenly; more than one, so that small chunks do not pay for a lock each.
constexpr std::size_t batch = 8;

}  // namespace

Lane::Lane(std::size_t rail, std::string rail_name, Window window, Transport& one_sided,
           Transport& relay)
    : rail_(rail),
      rail_name_(std::move(rail_name)),
      window_(window),
      one_sided_(one_sided),
      relay_(relay) {
  one_sided_.set_sink(*this);
  relay_.set_sink(*this);
}

void Lane::add(std::shared_ptr<TransferState> transfer) {
  // While the window is stuck nobody looks at those that have ended meanwhile.
  if (active_.size() >= sweep_at_) {
    std::erase_if(active_, [](const auto& each) { return each->ended(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * active_.size());
  }
  active_.push_back(std::move(transfer));
}

Transport& Lane::transport_of(const TransferState& transfer) const {
  return transfer.submission().transport == TransportKind::relay ? relay_ : one_sided_;
}

std::size_t Lane::pump() {
  std::size_t posted = retry_held();
  std::size_t passed_over = 0;
  while (passed_over < active_.size() && in_flight_ < window_.all_operations) {
    decltype(active_) taken;
    taken.splice(taken.begin(), active_, active_.begin());
    const std::uint64_t before = in_flight_;
    const Pulled pulled = pull(*taken.front());
    posted += in_flight_ - before;
    passed_over = pulled == Pulled::nothing_now ? passed_over + 1 : 0;
    if (pulled != Pulled::all) active_.splice(active_.end(), taken);
  }
  return posted;
}

std::size_t Lane::room(const Transport& transport, const Route& route) const {
  // What was refused goes first.
  if (route.held > 0 || route.operations >= window_.operations || route.bytes >= window_.bytes)
    return 0;
  const auto chunks = static_cast<std::size_t>(
      std::max<std::uint64_t>(1, (window_.bytes - route.bytes) / transport.chunk_limit(route)));
  return std::min({batch, chunks, window_.operations - route.operations,
                   window_.all_operations - in_flight_, transport.room(route)});
}

Lane::Pulled Lane::pull(TransferState& transfer) {
  Transport& transport = transport_of(transfer);
  Route* route = transfer.peer().route_by_rail[rail_];
  if (route == nullptr || route->dead) return Pulled::all;
  const std::size_t wanted = room(transport, *route);
  if (wanted == 0) return transfer.ended() ? Pulled::all : Pulled::nothing_now;
  std::array<Chunk, batch> chunks;
  const std::size_t count =
      transfer.take(std::span(chunks).first(wanted), transport.chunk_limit(*route));
  bool left = false;
  for (std::size_t i = 0; i < count; ++i)
    left = !send_off(transfer, *route, transport, chunks[i]) || left;
  if (count > 0) return left ? Pulled::all : Pulled::some;
  return pull_proof(transfer, *route);
}

/// What proves that chunks are visible goes through the relay, since the target has to answer; the
/// word of a lease is read like other bytes.
Lane::Pulled Lane::pull_proof(TransferState& transfer, Route& route) {
  const auto kind = transfer.owed_proof(rail_);
  if (!kind) return Pulled::all;
  Transport& transport = *kind == Chunk::Kind::arrival ? relay_ : one_sided_;
  if (room(transport, route) == 0) return Pulled::nothing_now;
  Chunk proof;
  if (!transfer.take_proof(rail_, *kind, proof)) return Pulled::some;  // another may be owed
  return send_off(transfer, route, transport, proof) ? Pulled::some : Pulled::all;
}

/// False if this lane can't carry the transfer any more.
bool Lane::send_off(TransferState& transfer, Route& route, Transport& transport,
                    const Chunk& chunk) {
  Op& op = make_op(transfer, route, transport, chunk);
  const Fate fate = route.held == 0 ? try_post(op) : Fate::held;
  if (fate == Fate::held) hold(op);
  return fate != Fate::failed;
}

/// Hands a chunk back that this lane can't carry, and nothing else of the transfer.
void Lane::leave(TransferState& transfer, const Chunk& chunk, const Error& why) {
  const auto alive = transfer.shared_from_this();
  std::erase(active_, alive);
  transfer.lane_leaves(rail_, why);
  transfer.give_back(chunk);
}

Lane::Fate Lane::try_post(Op& op) {
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

void Lane::hold(Op& op) {
  ++op.route->held;
  held_.push_back(&op);
}

/// Posts those that were refused, in order for each peer: there may be room for one and not for
/// another.
std::size_t Lane::retry_held() {
  if (held_.empty()) return 0;
  const std::deque<Op*> waiting = std::exchange(held_, {});
  for (const Op* op : waiting) op->route->held = 0;
  std::size_t posted = 0;
  for (Op* each : waiting) {
    Op& op = *each;
    const bool wanted = !op.transfer->stopped() && !op.route->dead;
    if (!wanted) {
      TransferState& transfer = *op.transfer;
      const Chunk chunk = op.chunk;
      free_op(op);
      transfer.give_back(chunk);
      continue;
    }
    const Fate fate = op.route->held == 0 ? try_post(op) : Fate::held;
    if (fate == Fate::held) hold(op);
    posted += fate == Fate::posted ? 1 : 0;
  }
  return posted;
}

/// A refused post was certainly not carried out: other lanes may take the chunk, this one leaves
/// the transfer.
void Lane::post_failed(Op& op, const providers::Post& post) {
  const auto transfer = op.transfer->shared_from_this();
  providers::Completion refused;
  refused.fabric_code = post.fabric_code;
  const Error error = error_of(op, refused);
  const Chunk chunk = op.chunk;
  free_op(op);
  if (chunk.kind != Chunk::Kind::arrival) return leave(*transfer, chunk, error);
  std::erase(active_, transfer);
  transfer->failed(chunk, error);
}

/// The way to the peer broke: nothing more of the operation is sent, and what has arrived are bytes
/// that another NIC may write once more. This one is left alone for a while.
void Lane::path_failed(TransferState& transfer, Route& route, const Chunk& chunk,
                       const Error& error) {
  set_aside(route, transfer.peer(), error);
  Chunk again = chunk;
  again.touched = true;
  leave(transfer, again, error);
}

void Lane::timed_out(const TransferState& transfer) {
  const auto out = std::find_if(ops_.begin(), ops_.end(),
                                [&](const Op& op) { return op.transfer == &transfer && op.out; });
  if (out == ops_.end() || out->route->dead) return;
  set_aside(*out->route, transfer.peer(),
            Error(Code::timed_out, "operations neither ended nor failed in their time"));
}

void Lane::chunk_ended(Op& op, const providers::Completion& completion) {
  // efa in libfabric 1.17 reports a failed operation for each of its packets, and some that it has
  // refused.
  if (!op.out) return;
  TransferState& transfer = *op.transfer;
  const Chunk chunk = op.chunk;
  if (!completion.ok) {
    Error error = error_of(op, completion);
    Route& route = *op.route;
    free_op(op, true);
    if (completion.path_failed && chunk.kind != Chunk::Kind::arrival && !transfer.ended() &&
        !route.dead)
      return path_failed(transfer, route, chunk, error);
    return transfer.failed(chunk, std::move(error));
  }
  op.route->works();
  ++operations_done_;
  bytes_done_ += chunk.length;
  free_op(op);
  transfer.completed(rail_, chunk);
}

void Lane::peer_died(Route& route) {
  route.dead = true;
  in_flight_ -= route.operations;
  lost_ += route.operations;
  one_sided_.peer_died(route);
  relay_.peer_died(route);
  retry_held();
}

Lane::Orphans Lane::take_orphans() {
  Orphans orphans;
  for (Op& op : ops_) {
    if (op.transfer == nullptr) continue;
    orphans.emplace_back(op.transfer->shared_from_this(), op.chunk);
    orphans.back().second.touched = true;
  }
  return orphans;
}

Op& Lane::make_op(TransferState& transfer, Route& route, Transport& transport, const Chunk& chunk) {
  if (free_ops_.empty()) std::swap(free_ops_, failed_ops_);
  if (free_ops_.empty()) free_ops_.push_back(&ops_.emplace_back());
  Op& op = *free_ops_.back();
  free_ops_.pop_back();
  op.transfer = &transfer;
  op.route = &route;
  op.transport = &transport;
  op.chunk = chunk;
  ++in_flight_;
  ++route.operations;
  route.bytes += chunk.length;
  return op;
}

void Lane::free_op(Op& op, bool failed) {
  --op.route->operations;
  op.route->bytes -= op.chunk.length;
  if (op.route->dead) {
    --lost_;
  } else {
    --in_flight_;
  }
  op.transfer = nullptr;
  op.out = false;
  // A failed one is not taken again at once: see chunk_ended().
  (failed ? failed_ops_ : free_ops_).push_back(&op);
}

Error Lane::error_of(const Op& op, const providers::Completion& completion) const {
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
                                      : fmt::format("a {} of {} bytes", operation, op.chunk.length);
  return Error(code, fmt::format("{} failed: {}", what, reason))
      .with_peer(peer.introduction.name)
      .with_rail(rail_name_)
      .with_operation(operation)
      .with_fabric_code(fabric_code);
}

}  // namespace weft::core
