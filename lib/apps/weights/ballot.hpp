// How a subscriber votes on a step. See README.md for why all come to the same end.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::weights {

/// Where a subscriber stands in a round, the attempt to publish a step.
enum class Stand : std::uint8_t {
  receiving,  ///< Has not voted.
  complete,   ///< Has all bytes and told the leader, who alone may take that vote back.
  pledged,    ///< Told other subscribers so, too: nobody can take it back.
  committed,
  voided,
};

/// One subscriber's part in one round. Whoever knows that all have voted for it commits. One
/// that has not voted may void the round, and then nobody can know that all have.
class Ballot {
 public:
  /// `members` vote in this round, and this is the one with the number `self`.
  Ballot(std::size_t members, std::size_t self) : pledged_(members), self_(self) {}

  Stand stand() const noexcept { return stand_; }
  bool settled() const noexcept { return stand_ == Stand::committed || stand_ == Stand::voided; }

  /// All bytes are here, and no more can come.
  void complete();
  /// They will not be.
  void give_up();
  /// The leader asks to void the round. What was pledged stays.
  void stop();
  /// The leader is gone, or silent for longer than the round may take.
  void leader_lost() { pledge(); }
  /// Another member asks where this one stands.
  void asked() { pledge(); }
  /// A member tells where it stands.
  void told(std::size_t member, Stand stand);
  /// The leader tells how the round ended.
  void decided(bool commit);

  auto operator<=>(const Ballot&) const = default;

 private:
  void pledge();

  Stand stand_ = Stand::receiving;
  std::vector<bool> pledged_;  // by member
  std::size_t self_;
};

}  // namespace weft::weights
