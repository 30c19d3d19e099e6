// A transfer: its chunks, its proofs, and the rails that carry them.
#include <algorithm>
#include <utility>

#include "peer/peer_state.hpp"
#include "transfer/transfer_state.hpp"

namespace weft::core {

/// A transfer past its deadline must end in this round.
bool TransferState::may_take(Clock::time_point now) const {
  return phase() == Phase::carrying && !cancel_asked_ && now < due();
}

std::size_t TransferState::take(std::size_t rail, std::span<Chunk> into, std::uint64_t limit,
                                std::uint64_t all, Clock::time_point now) {
  const Lock lock(mutex_);
  if (!may_take(now)) return 0;
  // Pieces are whole blocks, and so is what is cut of them.
  all = whole_blocks(std::min(all, std::max(parts_.most, prepared().block)));
  limit = whole_blocks(limit);
  std::size_t count = 0;
  while (count < into.size() && all > 0 && chunks_.take(rail, std::min(limit, all), into[count]))
    all -= into[count++].length;
  went_out(count, now);
  return count;
}

/// The most that the limit allows; where it allows none, the file's side refuses what is cut.
std::uint64_t TransferState::whole_blocks(std::uint64_t limit) const noexcept {
  const std::uint64_t block = prepared().block;
  return limit < block ? limit : limit & ~(block - 1);
}

std::optional<Chunk> TransferState::take_one(std::size_t rail, std::uint64_t limit) {
  const auto now = Clock::now();
  const Lock lock(mutex_);
  if (!may_take(now)) return std::nullopt;
  Chunk chunk;
  if (!chunks_.take(rail, limit, chunk)) return std::nullopt;
  went_out(1, now);
  return chunk;
}

void TransferState::went_out(std::size_t count, Clock::time_point now) {
  if (count == 0) return;
  outstanding_ += count;
  operations_ += count;
  // It may have come after the rail looked at the clock.
  if (first_out_ == never) first_out_ = std::max(now, submission_.submitted);
}

std::uint64_t TransferState::even_chunk(std::uint64_t limit) const noexcept {
  const std::uint64_t page = std::max<std::uint64_t>(4096, prepared().block);
  const bool two = limit < parts_.most && (parts_.most - 1) / limit == 1;
  if (!parts_.even || !two || ranges() != 1) return limit;
  return std::min(limit, (parts_.most + 2 * page - 1) / (2 * page) * page);
}

bool TransferState::has_more(std::size_t rail) const {
  const Lock lock(mutex_);
  return !chunks_.exhausted_for(rail) || !proofs_.empty();
}

bool TransferState::has_chunks() const {
  const Lock lock(mutex_);
  return !over() && !cancel_asked_ && !chunks_.exhausted();
}

bool TransferState::stopped() const {
  const Lock lock(mutex_);
  return over() || cancel_asked_;
}

std::optional<Chunk> TransferState::completed(std::size_t rail, const Chunk& chunk) {
  std::optional<Chunk> proof;
  change([&]() WEFT_REQUIRES(mutex_) {
    --outstanding_;
    if (stuck_ == rail) stuck_.reset();
    if (!chunk.proof()) {
      chunks_.carried(chunk);
      bytes_done_ += chunk.length;
      shares_[rail].operations += 1;
      shares_[rail].bytes += chunk.length;
    }
    const Act act = advance();
    // Where nothing follows, the end is when the last chunk came home.
    if (!chunk.proof() && outstanding_ == 0 && !over()) last_home_ = Clock::now();
    const bool any_rails = act == Act::offer && !prepared().contact;
    if (!any_rails || proofs_.front().kind != Chunk::Kind::epoch) return act;
    proof = take_proof(proofs_.begin());
    return Act::nothing;
  });
  return proof;
}

void TransferState::give_back(std::span<const Chunk> chunks) {
  change([&]() WEFT_REQUIRES(mutex_) {
    outstanding_ -= chunks.size();
    for (const Chunk& chunk : chunks) {
      if (chunk.proof()) {
        const bool left = prepared().contact && carriers_[chunk.local] == Part::left;
        if (!left) proofs_.push_back(chunk);
        continue;
      }
      chunks_.give_back(chunk);
      --operations_;
      ++retries_;
    }
    if (over() || cancel_asked_ || prepared().contact) return advance();
    return stranded() ? end(std::move(*ends_with_)) : Act::offer;
  });
}

void TransferState::failed(const Chunk& chunk, Error error) {
  change([&]() WEFT_REQUIRES(mutex_) {
    --outstanding_;
    if (!chunk.proof()) chunks_.lost(chunk);
    if (over()) return advance();
    if (prepared().contact) return leave_contact(chunk.local, error);
    return end({State::failed, std::move(error), chunk.proof()});
  });
}

/// Over the bounce-buffer transport it is the peer that says what it has done, and while the grant
/// held. A read by RMA is worth something only if the lease still held when all its bytes had come.
void TransferState::plan_proofs() {
  if (prepared().contact) return plan_contact();
  if (submission_.transport == TransportKind::bounce || submission_.bytes == 0) return;
  if (prepared().direction == Direction::read) {
    if (!submission_.trusted) proofs_.push_back({.kind = Chunk::Kind::epoch});
    return;
  }
  for (std::size_t rail = 0; rail < shares_.size(); ++rail) {
    if (shares_[rail].operations == 0) continue;
    const std::size_t wanted = proofs_of(rail);
    for (std::size_t target = 0; target < wanted; ++target)
      proofs_.push_back({.local = rail, .remote = target, .kind = Chunk::Kind::arrival});
  }
}

/// Providers may connect for requests and for RMA apart: so each rail also reads the lease's word,
/// of the target whose turn it is.
void TransferState::plan_contact() {
  for (const std::size_t rail : rails_) {
    const Targets& targets = prepared().path->of(rail)->targets;
    bool words = submission_.transport == TransportKind::one_sided;
    for (std::size_t target = 0; target < targets.size(); ++target) {
      proofs_.push_back({.local = rail, .remote = target, .kind = Chunk::Kind::arrival});
      words = words && prepared().remote->has_lease_word(targets[target].index);
    }
    if (words) proofs_.push_back({.local = rail, .kind = Chunk::Kind::epoch});
  }
}

/// How many of the peer's rails have to say that what this rail wrote is visible there.
std::size_t TransferState::proofs_of(std::size_t rail) const {
  // A copy that has ended is visible to whatever begins afterwards.
  if (submission_.transport == TransportKind::device_copy) return 0;
  // A signal is such a proof itself, where it takes the only way that the bytes have taken.
  if (submission_.signal && !submission_.verify && peer().one_way()) return 0;
  return prepared().path->of(rail)->proofs;
}

/// Whether the bytes of chunks that were completed are in their place.
bool TransferState::placed_for_sure() const {
  if (phase() > Phase::proving || submission_.transport == TransportKind::bounce) return true;
  if (prepared().direction == Direction::read) return false;
  for (std::size_t rail = 0; rail < shares_.size(); ++rail)
    if (shares_[rail].operations > 0 && proofs_of(rail) > 0) return false;
  return true;
}

TransferState::Proofs::const_iterator TransferState::find_proof(std::size_t rail) const {
  return std::find_if(proofs_.begin(), proofs_.end(), [&](const Chunk& each) {
    return each.local == rail || (each.kind == Chunk::Kind::epoch && !prepared().contact);
  });
}

std::optional<Chunk::Kind> TransferState::owed_proof(std::size_t rail) const {
  const Lock lock(mutex_);
  if (over() || cancel_asked_) return std::nullopt;
  const auto owed = find_proof(rail);
  return owed == proofs_.end() ? std::nullopt : std::optional(owed->kind);
}

bool TransferState::take_proof(std::size_t rail, Chunk::Kind kind, Chunk& into) {
  const Lock lock(mutex_);
  if (over() || cancel_asked_) return false;
  const auto owed = find_proof(rail);
  if (owed == proofs_.end() || owed->kind != kind) return false;
  into = take_proof(owed);
  return true;
}

Chunk TransferState::take_proof(Proofs::const_iterator owed) {
  const Chunk proof = *owed;
  proofs_.erase(owed);
  ++outstanding_;
  return proof;
}

void TransferState::rail_leaves(std::size_t rail, const Error& why) {
  change([&]() WEFT_REQUIRES(mutex_) {
    if (prepared().contact) return over() ? Act::nothing : leave_contact(rail, why);
    const bool goes_on = chunks_.parted() ? leave_rest(rail, why) : hand_on(rail);
    if (goes_on || over()) return Act::nothing;
    carriers_[rail] = Part::left;
    return end({State::failed, why});
  });
}

/// If rails reach different parts, others may be unable to carry this rail's rest.
bool TransferState::rail_steps_back(std::size_t rail) {
  if (prepared().contact) {
    rail_leaves(rail, Error(Code::timed_out, "the rail has had no room for operations"));
    return true;
  }
  const Lock lock(mutex_);
  if (!chunks_.parted() && hand_on(rail)) return true;
  stuck_ = static_cast<std::uint32_t>(rail);
  return false;
}

/// What it owes no other rail can give. The others go on.
TransferState::Act TransferState::leave_contact(std::size_t rail, const Error& why) {
  carriers_[rail] = Part::left;
  std::erase_if(proofs_, [&](const Chunk& each) { return each.local == rail; });
  const bool last = std::count(carriers_.begin(), carriers_.end(), Part::carries) == 0;
  return last ? end({State::failed, why}) : advance();
}

/// Of parts: leaves what it may to the others. False: they can't carry all that is left. What is
/// out now may come back: then that is seen.
bool TransferState::leave_rest(std::size_t rail, const Error& why) {
  if (carriers_[rail] != Part::carries) return true;
  carriers_[rail] = Part::left;
  ends_with_ = std::make_unique<Ending>(Ending{State::failed, why});
  const bool last = std::count(carriers_.begin(), carriers_.end(), Part::carries) == 0;
  return !last && !stranded();
}

/// A rail has left, and bytes are to be taken that none of the others may carry.
bool TransferState::stranded() const {
  if (!ends_with_) return false;
  RailBits carrying = 0;
  for (std::size_t rail = 0; rail < carriers_.size(); ++rail)
    if (carriers_[rail] == Part::carries) carrying |= submission_.reach().bit_of(rail);
  return chunks_.strands(carrying);
}

/// Leaves it to the rails that carry it besides this one, or to one that has not tried yet. False:
/// there is none.
bool TransferState::hand_on(std::size_t rail) {
  if (carriers_[rail] != Part::carries) return true;
  if (std::count(carriers_.begin(), carriers_.end(), Part::carries) == 1) {
    const auto& all = prepared().path->rails();
    const auto another = std::find_if(
        all.begin(), all.end(),
        [&](std::size_t each) WEFT_REQUIRES(mutex_) { return carriers_[each] == Part::none; });
    if (another == all.end()) return false;
    carriers_[*another] = Part::carries;
  }
  carriers_[rail] = Part::left;
  return true;
}

std::vector<std::size_t> TransferState::carriers() const {
  const Lock lock(mutex_);
  std::vector<std::size_t> rails;
  for (std::size_t rail = 0; rail < carriers_.size(); ++rail)
    if (carriers_[rail] == Part::carries) rails.push_back(rail);
  for (const Chunk& proof : proofs_)
    if (proof.kind == Chunk::Kind::arrival &&
        std::find(rails.begin(), rails.end(), proof.local) == rails.end())
      rails.push_back(proof.local);
  return rails;
}

}  // namespace weft::core
