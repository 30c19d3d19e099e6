// What is true: who may do what to which memory, and what it must hold. Kept by the director alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "arena.hpp"
#include "content.hpp"
#include "layout.hpp"
#include "process.hpp"

namespace weft::chaos {

/// A part of a block that a transfer reads or writes, in the arena.
struct Busy {
  std::uint64_t transfer = 0, begin = 0, end = 0;
  bool writes = false;
};

/// Memory that can be granted. One grant at a time covers it.
struct Block {
  Range range;
  Content content;
  std::uint64_t grant = 0;  // 0: nobody may touch it
  std::vector<Busy> busy;
  std::uint64_t last_grant = 0;
};

/// Memory for one transfer of the node's own at a time.
struct Slot {
  Range range;
  Content content;
  std::uint64_t transfer = 0;  // 0: nobody may touch it
};

struct SegmentTruth {
  enum class State { open, releasing, stuck, gone };
  State state = State::open;
  std::vector<Block> blocks;
  std::vector<Slot> slots;
};

/// One engine from its opening to its end.
struct LifeTruth {
  std::uint64_t number = 0;  // no other life has it
  std::uint64_t incarnation = 0;
  std::string address;
  std::unique_ptr<Arena> arena;
  std::uint64_t guard_stream = 0;
  std::vector<SegmentTruth> segments;
  std::set<unsigned> peers;                       // nodes whose present life it has met
  std::map<std::string, Clock::time_point> lost;  // when it last lost a peer of that name
  bool loses = false;                             // its faults are such that operations never end
};

struct NodeTruth {
  enum class Phase { down, opening, open, closing };
  unsigned index = 0;
  std::string name;
  std::unique_ptr<Process> process;
  Phase phase = Phase::down;
  std::unique_ptr<LifeTruth> life;
  std::optional<Clock::time_point> frozen_until;
  Clock::time_point not_before{};  // when it may be started again
};

struct GrantTruth {
  /// `ending`: it was said to end, and its memory may have been used again since; `lost`: it ended,
  /// but not so that the memory may be used again.
  enum class State { asked, holds, ending, lost };
  std::uint64_t id = 0;
  unsigned node = 0;
  std::uint64_t life = 0;
  std::size_t segment = 0;
  std::vector<std::size_t> blocks;
  Rights rights = Rights::read_write;
  State state = State::asked;
  Json blob;
  std::optional<Clock::time_point> expires;  // certainly over by then
  std::set<unsigned> asked_by, held_by;      // nodes whose present life imports it, or has done so
};

/// When a grant ended for good: all that was done under it was done before.
struct GrantEnd {
  unsigned node = 0;
  std::uint64_t life = 0;
  Clock::time_point asked{}, ended{};
};

struct TransferTruth {
  enum class Phase { waits, runs, ended };
  std::uint64_t id = 0;
  unsigned node = 0;
  std::uint64_t life = 0;
  std::uint64_t grant = 0;
  unsigned owner = 0;
  std::uint64_t owner_life = 0;
  bool write = true;
  std::size_t segment = 0, slot = 0;  // here
  std::size_t remote_segment = 0, block = 0;
  std::vector<Pair> pieces;  // in the arenas
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;       // of a write
  std::vector<Stretch> expected;  // here, of a read that is done
  bool cancelled = false;
  Phase phase = Phase::waits;
  std::string end;    // its state in words, once it has ended
  std::string error;  // and the code of its error
  bool quiescent = false;
  bool node_gone = false;             // nothing more is heard of it
  bool awaited = false;               // somebody waits for its signal
  std::optional<std::string> signal;  // what came of it: "ok" or a code
  Clock::time_point since{};          // of the submission
  Clock::time_point ended_at{};       // by the clock of its node, which is everybody's
};

}  // namespace weft::chaos
