#include "transport/one_sided.hpp"

#include "transfer/transfer_state.hpp"

namespace weft::core {

providers::Post OneSided::post(Op& op) {
  const PreparedState& prepared = op.transfer->prepared();
  const SegmentState& segment = *prepared.local;
  const RemoteState& remote = *prepared.remote;
  const RemoteRail& target = prepared.path->of(rail_)->targets.take_turn();
  const providers::Local local{segment.address() + op.chunk.local, op.chunk.length,
                               segment.descriptor(rail_)};
  const providers::Target place{target.address, remote.rma_address(target.index, op.chunk.remote),
                                remote.key(target.index)};
  op.handler = this;
  return prepared.direction == Direction::write ? endpoint_.write(op, local, place)
                                                : endpoint_.read(op, local, place);
}

}  // namespace weft::core
