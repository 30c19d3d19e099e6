#include "transport/one_sided.hpp"

#include <cstring>

#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

// Epoch words under way at a time; beyond that they wait their turn.
constexpr std::size_t most_landings = 256;

}  // namespace

Result<void> OneSided::prepare() {
  return landings_.free() > 0 ? Result<void>() : landings_.grow(most_landings);
}

providers::Post OneSided::post(Op& op) {
  op.handler = this;
  if (op.chunk.kind == Chunk::Kind::epoch) return read_epoch(op);
  const PreparedState& prepared = op.transfer->prepared();
  const SegmentState& segment = *prepared.local;
  const RemoteState& remote = *prepared.remote;
  const RemoteRail& target = prepared.path->of(rail_)->targets.take_turn();
  const providers::Local local{segment.address() + op.chunk.local, op.chunk.length,
                               segment.descriptor(rail_)};
  const providers::Target place{target.address, remote.rma_address(target.index, op.chunk.remote),
                                remote.key(target.index)};
  return prepared.direction == Direction::write ? endpoint_.write(op, local, place)
                                                : endpoint_.read(op, local, place);
}

providers::Post OneSided::read_epoch(Op& op) {
  Buffer* landing = landings_.take();
  if (landing == nullptr) return {providers::PostStatus::again, 0};
  std::memset(landing->data, 0, sizeof(std::uint64_t));
  const PreparedState& prepared = op.transfer->prepared();
  const RemoteRail& target = prepared.path->of(rail_)->targets.take_turn();
  const RailKey& word = prepared.remote->epoch_word(target.index);
  op.landing = landing;
  const providers::Post post =
      endpoint_.read(op, {landing->data, sizeof(std::uint64_t), landing->descriptor},
                     {target.address, word.base, word.key});
  if (post.status != providers::PostStatus::posted)
    landings_.put_back(*std::exchange(op.landing, nullptr));
  return post;
}

void OneSided::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& op = static_cast<Op&>(posted);
  Buffer* landing = std::exchange(op.landing, nullptr);
  if (landing == nullptr) return sink().chunk_ended(op, completion);
  std::uint64_t epoch = 0;
  std::memcpy(&epoch, landing->data, sizeof epoch);
  if (completion.ok)
    landings_.put_back(*landing);
  else
    landings_.put_back_failed(*landing);
  providers::Completion verdict = completion;
  if (completion.ok && epoch != op.transfer->prepared().remote->description().epoch) {
    verdict.ok = false;
    verdict.refusal = Code::stale;
    verdict.text = "the grant had ended before all bytes were read";
  }
  sink().chunk_ended(op, verdict);
}

}  // namespace weft::core
