#include "transport/lease_reader.hpp"

#include <cstring>
#include <utility>

#include "transfer/transfer_state.hpp"

namespace weft::core {
namespace {

// Words under way at a time; beyond that they wait their turn.
constexpr std::size_t most_landings = 256;

const RemoteState* lease_of(const Op& op) {
  return op.transfer->prepared().remote.get();
}

}  // namespace

Result<void> LeaseReader::prepare() {
  return landings_.grow_to(most_landings, most_landings);
}

void LeaseReader::add(Op& op) {
  const auto [reading, first] = readings_.try_emplace(lease_of(op));
  reading->second.waiting.push_back(&op);
  if (first) due_.push_back(reading->first);
}

/// Begins to read for the ops that wait. They wait on if that is refused.
providers::Post LeaseReader::begin(Reading& reading) {
  Buffer* landing = landings_.take();
  if (landing == nullptr) return {providers::PostStatus::again, 0};
  std::memset(landing->data, 0, sizeof(std::uint64_t));
  const PreparedState& prepared = reading.waiting.front()->transfer->prepared();
  const RemoteRail& target = prepared.path->of(rail_)->targets.take_turn();
  const providers::FabricAddress address = target.address();  // before the key
  const RailKey word = prepared.remote->lease_word(target.index);
  landing->handler = this;
  under_way_.emplace(landing, prepared.remote.get());
  std::swap(reading.served, reading.waiting);
  const providers::Post post =
      endpoint_.read(*landing, {landing->data, sizeof(std::uint64_t), landing->registration},
                     {address, word.base, word.key});
  if (post.status == providers::PostStatus::posted) return post;
  std::swap(reading.served, reading.waiting);
  under_way_.erase(landing);
  landings_.put_back(*landing);
  return post;
}

/// False if there was no room.
bool LeaseReader::begin_or_fail(Readings::iterator reading) {
  const providers::Post post = begin(reading->second);
  // What ended at once may have taken the entry along.
  if (post.status == providers::PostStatus::posted) return true;
  if (post.status == providers::PostStatus::again) return false;
  const std::vector<Op*> waiting = std::move(reading->second.waiting);
  readings_.erase(reading);
  providers::Completion failed;
  failed.ok = false;
  failed.path_failed = true;
  failed.fabric_code = post.fabric_code;
  for (Op* op : waiting) ended_(*op, failed);
  return true;
}

std::size_t LeaseReader::progress() {
  std::size_t begun = 0;
  for (const RemoteState* lease : std::exchange(due_, {})) {
    const auto reading = readings_.find(lease);
    if (reading == readings_.end() || !reading->second.served.empty()) continue;
    if (begin_or_fail(reading))
      ++begun;
    else
      due_.push_back(lease);
  }
  return begun;
}

void LeaseReader::completed(providers::Posted& posted, const providers::Completion& completion) {
  auto& landing = static_cast<Buffer&>(posted);
  const auto under_way = under_way_.find(&landing);
  const auto reading = readings_.find(under_way->second);
  under_way_.erase(under_way);
  std::uint64_t epoch = 0;
  std::memcpy(&epoch, landing.data, sizeof epoch);
  landings_.put_back(landing);

  const RemoteState* const lease = reading->first;
  const std::vector<Op*> served = std::exchange(reading->second.served, {});
  if (reading->second.waiting.empty())
    readings_.erase(reading);
  else
    due_.push_back(lease);
  providers::Completion verdict = completion;
  if (completion.ok && epoch != lease->description().epoch) {
    verdict.ok = false;
    verdict.refusal = Code::stale;
    verdict.text = "the grant had ended before all bytes were read";
  }
  for (Op* op : served) ended_(*op, verdict);
}

/// Ops that a reading serves stay: the provider may not lose the address before that ends.
void LeaseReader::peer_died(const Route& route) {
  std::vector<Op*> waiting;
  for (auto& [lease, reading] : readings_) {
    const auto& some = reading.served.empty() ? reading.waiting : reading.served;
    if (some.front()->route != &route) continue;
    waiting.insert(waiting.end(), reading.waiting.begin(), reading.waiting.end());
    reading.waiting.clear();
  }
  std::erase_if(readings_, [](const auto& each) {
    return each.second.served.empty() && each.second.waiting.empty();
  });
  providers::Completion failed;
  failed.ok = false;
  for (Op* op : waiting) ended_(*op, failed);
}

}  // namespace weft::core
