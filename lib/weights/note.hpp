// What publishers and subscribers say to each other.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/memory.hpp>
#include <weft/weights_plan.hpp>

#include "weights/ballot.hpp"

namespace weft::weights {

/// One attempt to publish a step.
struct Round {
  std::uint64_t leader = 0;  // a random number of one leader's life
  std::uint64_t number = 0;
  auto operator<=>(const Round&) const = default;
};

/// A rank, where to meet it, and how many writes come from it.
struct Located {
  std::uint32_t rank = 0;
  std::string address;
  std::uint64_t writes = 0;
};

/// What one publisher writes to one subscriber.
struct Send {
  std::uint32_t to = 0;
  std::vector<Piece> pieces;
};

enum class Outcome : std::uint8_t { done, voided, unknown };

enum class NoteKind : std::uint8_t {
  join,      ///< To the leader: side, rank, text (address), description; round and stand if any.
  sends,     ///< To a publisher: what it writes, for the rounds that follow.
  sources,   ///< To a subscriber: who writes to it, and all subscribers.
  ready,     ///< To the leader: rank, step, time.
  begin,     ///< To all: round, step, time.
  granted,   ///< From a subscriber to a publisher: round, rank.
  failed,    ///< To the leader: round, text.
  stop,      ///< To subscribers: round, text.
  stand,     ///< From a subscriber to the leader or another: round, rank, stand, text.
  question,  ///< From a subscriber to another: round.
  decision,  ///< To subscribers: round, commit, text.
  outcome,   ///< To publishers: step, outcome, text.
};

/// Fields that a kind does not use are empty.
struct Note {
  NoteKind kind = NoteKind::join;
  Round round = {};
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  Side side = Side::publisher;
  Stand stand = Stand::receiving;
  bool commit = false;
  Outcome outcome = Outcome::done;
  std::uint64_t microseconds = 0;
  std::string text = {};
  Rank description = {};
  std::vector<Located> sources = {}, members = {};
  std::vector<Send> sends = {};
};

Blob encode(const Note& note);
/// None if the bytes are no note.
std::optional<Note> decode(Bytes bytes);

}  // namespace weft::weights
