#include "transport/one_sided.hpp"

#include <cerrno>

#include "transfer/transfer_state.hpp"

namespace weft::core {

providers::Post OneSided::post(Op& op) {
  if (op.chunk.kind == Chunk::Kind::epoch) {
    epochs_.add(op);
    return {providers::PostStatus::posted, 0};
  }
  op.handler = this;
  const PreparedState& prepared = op.transfer->prepared();
  const SegmentState& segment = *prepared.local;
  const RemoteState& remote = *prepared.remote;
  const RemoteRail& target = prepared.path->of(rail_)->targets.take_turn();
  const providers::FabricAddress address = target.address();  // before the keys
  // Lost since it was submitted, when a rail was opened again.
  if (prepared.losses != losses_of(segment, remote) &&
      !(segment.reached_by(rail_) && remote.reachable_on(target.index)))
    return {providers::PostStatus::failed, ENOKEY};
  const bool writes = prepared.direction == Direction::write;
  const auto piece = [&](const Chunk& chunk) -> providers::RmaPiece {
    return {{segment.address() + chunk.local, chunk.length, segment.registration(rail_),
             segment.may_fault()},
            {address, remote.rma_address(target.index, chunk.remote), remote.key(target.index)}};
  };
  if (op.others.empty()) {
    const auto& [local, place] = piece(op.chunk);
    return writes ? endpoint_.write(op, local, place) : endpoint_.read(op, local, place);
  }
  pieces_.clear();
  op.each_chunk([&](const Chunk& chunk) { pieces_.push_back(piece(chunk)); });
  return writes ? endpoint_.write_list(op, pieces_) : endpoint_.read_list(op, pieces_);
}

CopiedAtOnce OneSided::copy_at_once(const PreparedState& prepared, const Picks& picks,
                                    bool trusted) {
  CopiedAtOnce copied;
  const Targets& targets = prepared.path->of(rail_)->targets;
  if (targets.size() != 1 || prepared.losses != losses_of(*prepared.local, *prepared.remote))
    return copied;
  Cursor pieces(prepared.pieces, picks);
  while (const auto chunk = pieces.next(chunk_limit_)) {
    if (!copy_at_once(prepared, targets.front(), *chunk)) return copied;
    ++copied.operations;
    copied.bytes += chunk->length;
  }
  copied.runs = pieces.runs();
  const bool proof = prepared.direction == Direction::read && !trusted && copied.bytes > 0;
  copied.all = !proof || holds(*prepared.remote, targets.front());
  return copied;
}

bool OneSided::copy_at_once(const PreparedState& prepared, const RemoteRail& target,
                            const Chunk& chunk) {
  const SegmentState& segment = *prepared.local;
  const providers::FabricAddress address = target.address();  // before the key
  return endpoint_.copy_at_once(prepared.direction == Direction::write,
                                {segment.address() + chunk.local, chunk.length,
                                 segment.registration(rail_), segment.may_fault()},
                                {address, prepared.remote->rma_address(target.index, chunk.remote),
                                 prepared.remote->key(target.index)});
}

bool OneSided::holds(const RemoteState& lease, const RemoteRail& target) {
  const providers::FabricAddress address = target.address();  // before the key
  const RailKey word = lease.epoch_word(target.index);
  std::uint64_t epoch = 0;
  const bool read =
      endpoint_.copy_at_once(false, {&epoch, sizeof epoch}, {address, word.base, word.key});
  return read && epoch == lease.description().epoch;
}

void OneSided::completed(providers::Posted& posted, const providers::Completion& completion) {
  Op& op = static_cast<Op&>(posted);
  if (completion.ok && completion.mapped) op.transfer->count_copied(op.bytes());
  sink().chunk_ended(op, completion);
}

}  // namespace weft::core
