// How the leader counts the votes on a step. See README.md.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "weights/ballot.hpp"

namespace weft::weights {

/// The leader's part in one round. It decides nothing: it learns how the round ended from the
/// votes.
class Tally {
 public:
  enum class State {
    open,
    stopping,  ///< Members were asked to void the round; only their answers count.
    committed,
    voided,
  };

  explicit Tally(std::size_t members) : stands_(members, Stand::receiving) {}

  State state() const noexcept { return state_; }
  bool settled() const noexcept { return state_ == State::committed || state_ == State::voided; }
  Stand stand(std::size_t member) const { return stands_[member]; }

  /// A member tells where it stands.
  void told(std::size_t member, Stand stand);
  /// Time is short, a trainer failed or a member is gone. Every member is to be asked to stop.
  void stop();

  auto operator<=>(const Tally&) const = default;

 private:
  bool voted(Stand stand) const noexcept;

  State state_ = State::open;
  std::vector<Stand> stands_;
};

}  // namespace weft::weights
