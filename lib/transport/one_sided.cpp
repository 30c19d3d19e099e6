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
  const providers::Local local{segment.address() + op.chunk.local, op.chunk.length,
                               segment.registration(rail_), segment.may_fault()};
  const providers::Target place{address, remote.rma_address(target.index, op.chunk.remote),
                                remote.key(target.index)};
  return prepared.direction == Direction::write ? endpoint_.write(op, local, place)
                                                : endpoint_.read(op, local, place);
}

void OneSided::completed(providers::Posted& posted, const providers::Completion& completion) {
  Op& op = static_cast<Op&>(posted);
  if (completion.ok && completion.mapped) op.transfer->count_copied(op.chunk.length);
  sink().chunk_ended(op, completion);
}

}  // namespace weft::core
