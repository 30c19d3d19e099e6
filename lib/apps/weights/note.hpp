// What publishers and subscribers say to each other.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/place.hpp>
#include <weft/weights_plan.hpp>

#include "weights/ballot.hpp"

namespace weft::weights {

/// One attempt to publish a step.
struct Round {
  std::uint64_t leader = 0;  // a random number of one leader's life
  std::uint64_t number = 0;
  auto operator<=>(const Round&) const = default;
};

/// A subscriber, and where to meet it.
struct Located {
  std::uint32_t rank = 0;
  std::string address;
};

/// A chunk and a hop of the plan, as one number: hop h + 1 of a chunk comes right behind its hop h.
using Stage = std::uint32_t;

/// Of whom a subscriber gets something in a stage, and in how many writes.
struct Source {
  std::string address;
  Stage stage = 0;
  std::uint64_t writes = 0;
};

/// What a rank writes to a subscriber in a stage.
struct Send {
  std::uint32_t to = 0;
  Stage stage = 0;
  bool passed_on = false;  // may be written when all of the stage before has come
  std::vector<Piece> pieces;
};

enum class Outcome : std::uint8_t { done, voided, unknown };

enum class NoteKind : std::uint8_t {
  join,      ///< To the leader: side, rank, text (address), description; round and stand if any.
  plan,      ///< To all, for the rounds that follow: what the rank writes (sends, verify); to a
             ///< subscriber also who writes to it (sources), and all subscribers (members).
  ready,     ///< To the leader: rank, call, step, time.
  begin,     ///< To all: round, step, time; to a publisher also its call.
  granted,   ///< From a subscriber to one that writes to it: round, rank, grants.
  failed,    ///< To the leader, of what a rank writes: round, text.
  stop,      ///< To subscribers: round, text.
  stand,     ///< From a subscriber to the leader or another: round, rank, stand, text.
  question,  ///< From a subscriber to another: round.
  decision,  ///< To subscribers: round, commit, text.
  outcome,   ///< To publishers: call, outcome, text.
};

/// Fields that a kind does not use are empty.
struct Note {
  NoteKind kind = NoteKind::join;
  Round round = {};
  std::uint64_t call = 0;  // of a publisher: which publish() this is about
  std::uint64_t step = 0;
  std::uint32_t rank = 0;
  Side side = Side::publisher;
  Stand stand = Stand::receiving;
  bool commit = false;
  Outcome outcome = Outcome::done;
  std::uint64_t microseconds = 0;
  std::string text = {};
  Rank description = {};
  bool verify = false;
  std::vector<Located> members = {};
  std::vector<Source> sources = {};
  std::vector<Send> sends = {};
  std::vector<Blob> grants = {};  // of the set, by segment
};

Blob encode(const Note& note);
/// None if the bytes are no note.
std::optional<Note> decode(Bytes bytes);

}  // namespace weft::weights
