#include "transport/rma.hpp"

#include <cerrno>

#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

constexpr providers::Post keys_lost{providers::PostStatus::failed, ENOKEY};

}  // namespace

providers::Post Rma::post(Op& op) {
  if (op.chunk.kind == Chunk::Kind::epoch) {
    lease_reader_.add(op);
    return {providers::PostStatus::posted, 0};
  }
  op.handler = this;
  const PreparedState& prepared = op.transfer->prepared();
  const auto aim = this->aim(prepared, op);
  if (!aim) return keys_lost;
  op.peer_rail = aim->target.index;
  const bool writes = prepared.direction == Direction::write;
  if (op.others.empty()) {
    const auto& [local, place] = piece(prepared, *aim, op.chunk);
    return writes ? endpoint_.write(op, local, place) : endpoint_.read(op, local, place);
  }
  pieces_.clear();
  op.each_chunk([&](const Chunk& chunk) { pieces_.push_back(piece(prepared, *aim, chunk)); });
  return writes ? endpoint_.write_list(op, pieces_) : endpoint_.read_list(op, pieces_);
}

/// All are aimed before the first is posted, so that none is left out after that: the last one
/// rings the doorbell for all.
providers::BatchPost Rma::post_all(std::span<Op* const> ops) {
  if (!shared_doorbell_ || ops.size() == 1) return Transport::post_all(ops);
  const PreparedState& prepared = ops.front()->transfer->prepared();
  posts_.clear();
  for (Op* op : ops) {
    const auto aim = this->aim(prepared, *op);
    if (!aim) break;
    op->handler = this;
    op->peer_rail = aim->target.index;
    posts_.push_back({op, piece(prepared, *aim, op->chunk)});
  }
  if (posts_.empty()) return {0, keys_lost};
  auto batch = endpoint_.post_all(prepared.direction == Direction::write, posts_);
  if (batch.posted == posts_.size()) batch.refusal = keys_lost;
  return batch;
}

/// Where the post goes: to the next target with keys for all of it. Nothing if there is none: keys
/// were lost since the submission, as a rail was opened again.
std::optional<Rma::Aim> Rma::aim(const PreparedState& prepared, const Op& op) const {
  Targets& targets = prepared.path->of(rail_)->targets;
  if (prepared.reach.complete()) {
    const RemoteRail& target = targets.take_turn();
    const Aim aim{target, target.address()};  // before the keys
    if (prepared.losses == losses_of(*prepared.local, *prepared.remote)) return aim;
  }
  const RemoteRail* const target =
      targets.take_turn_of([&](const RemoteRail& each) { return reaches(prepared, each, op); });
  if (target == nullptr) return std::nullopt;
  const Aim aim{*target, target->address()};
  return reaches(prepared, *target, op) ? std::optional(aim) : std::nullopt;
}

/// As things are.
bool Rma::reaches(const PreparedState& prepared, const RemoteRail& target, const Op& op) const {
  bool all = true;
  op.each_chunk([&](const Chunk& chunk) {
    all = all && prepared.local->reaches(rail_, chunk.local) &&
          prepared.remote->reachable_on(target.index, chunk.remote);
  });
  return all;
}

providers::RmaPiece Rma::piece(const PreparedState& prepared, const Aim& aim,
                               const Chunk& chunk) const {
  const SegmentState& segment = *prepared.local;
  const RemoteState& remote = *prepared.remote;
  const std::uint32_t index = aim.target.index;
  return {{segment.address() + chunk.local, chunk.length, segment.registration(rail_, chunk.local),
           segment.may_fault()},
          {aim.address, remote.rma_address(index, chunk.remote), remote.key(index, chunk.remote)}};
}

/// The only one that it may go to; null where there are several, or it has not all keys.
const RemoteRail* Rma::only_target(const PreparedState& prepared) const {
  const Targets& targets = prepared.path->of(rail_)->targets;
  if (targets.size() != 1 || !prepared.reach.complete() ||
      prepared.losses != losses_of(*prepared.local, *prepared.remote))
    return nullptr;
  return &targets.front();
}

InlineCopied Rma::copy_inline(const PreparedState& prepared, const Picks& picks, bool trusted,
                              Clock::time_point until) {
  InlineCopied copied;
  const RemoteRail* target = only_target(prepared);
  if (target == nullptr) return copied;
  const auto by =
      prepared.mapped ? providers::CopyBy::callers_and_pollers : providers::CopyBy::kernels;
  for (Cursor pieces(prepared.pieces, picks, prepared.reach.seams()); !pieces.exhausted();) {
    const auto chunk = pieces.next(chunk_limit_);
    if (!copy_inline(prepared, *target, *chunk, by)) return copied;
    ++copied.operations;
    copied.bytes += chunk->length;
    copied.runs = pieces.runs();
    // A small piece is not worth a look at the clock.
    if (chunk->length == chunk_limit_ && Clock::now() >= until) return copied;
  }
  if (prepared.direction == Direction::read)
    copied.proven = trusted || holds(*prepared.remote, *target);
  return copied;
}

bool Rma::copy_inline(const PreparedState& prepared, const Chunk& chunk) {
  const RemoteRail* target = only_target(prepared);
  return target != nullptr && copy_inline(prepared, *target, chunk, providers::CopyBy::callers);
}

bool Rma::copy_inline(const PreparedState& prepared, const RemoteRail& target, const Chunk& chunk,
                      providers::CopyBy by) {
  const auto& [local, place] = piece(prepared, {target, target.address()}, chunk);
  return endpoint_.copy_inline(prepared.direction == Direction::write, local, place, by);
}

bool Rma::holds(const RemoteState& lease, const RemoteRail& target) {
  const providers::FabricAddress address = target.address();  // before the key
  const RailKey word = lease.lease_word(target.index);
  std::uint64_t epoch = 0;
  const bool read = endpoint_.copy_inline(
      false, {&epoch, sizeof epoch}, {address, word.base, word.key}, providers::CopyBy::callers);
  return read && epoch == lease.description().epoch;
}

void Rma::completed(providers::Posted& posted, const providers::Completion& completion) {
  Op& op = static_cast<Op&>(posted);
  const PreparedState& prepared = op.transfer->prepared();
  if (completion.ok && completion.mapped) op.transfer->count_copied(op.bytes());
  // What was sent of it may lie in the peer's sockets, or still be on its way.
  if (!completion.ok && !keys_fence_ && prepared.direction == Direction::write)
    prepared.remote->strays()->leave(op.peer_rail);
  sink().chunk_ended(op, completion);
}

}  // namespace weft::core
