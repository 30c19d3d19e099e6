#include "weights/ballot.hpp"

#include <algorithm>

namespace weft::weights {

void Ballot::complete() {
  if (stand_ == Stand::receiving) stand_ = Stand::complete;
}

void Ballot::give_up() {
  if (stand_ == Stand::receiving) stand_ = Stand::voided;
}

void Ballot::stop() {
  if (stand_ == Stand::receiving || stand_ == Stand::complete) stand_ = Stand::voided;
}

void Ballot::pledge() {
  give_up();
  if (stand_ != Stand::complete) return;
  stand_ = Stand::pledged;
  told(self_, Stand::pledged);
}

void Ballot::told(std::size_t member, Stand stand) {
  if (settled() || member >= pledged_.size()) return;
  if (stand == Stand::committed || stand == Stand::voided)
    return decided(stand == Stand::committed);
  if (stand == Stand::pledged) pledged_[member] = true;
  if (std::find(pledged_.begin(), pledged_.end(), false) == pledged_.end())
    stand_ = Stand::committed;
}

void Ballot::decided(bool commit) {
  if (settled()) return;
  if (!commit)
    stand_ = Stand::voided;
  else if (stand_ != Stand::receiving)  // Nobody commits without this one's vote.
    stand_ = Stand::committed;
}

}  // namespace weft::weights
