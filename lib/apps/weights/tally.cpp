#include "weights/tally.hpp"

#include <algorithm>

namespace weft::weights {

/// When it is stopping, a member that is merely complete may be about to take its vote back.
bool Tally::voted(Stand stand) const noexcept {
  return stand == Stand::pledged || (stand == Stand::complete && state_ == State::open);
}

void Tally::told(std::size_t member, Stand stand) {
  if (member >= stands_.size() || stand < stands_[member]) return;
  stands_[member] = stand;
  if (settled()) return;
  if (stand == Stand::voided)
    state_ = State::voided;
  else if (stand == Stand::committed ||
           std::all_of(stands_.begin(), stands_.end(), [&](Stand each) { return voted(each); }))
    state_ = State::committed;
}

void Tally::stop() {
  if (state_ == State::open) state_ = State::stopping;
}

}  // namespace weft::weights
