// Every order in which the leader and two subscribers of a round can act, messages can arrive,
// links can break and ranks can die, with the code that ships; and many orders of three.
// lib/apps/weights/README.md says what must hold.
#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weights/ballot.hpp"
#include "weights/tally.hpp"

namespace weft::weights::test {
namespace {

constexpr std::size_t most = 3;  // subscribers

/// A model is wrong in one of these ways, to show that it would be noticed.
enum class Fault {
  none,
  asked_keeps_its_vote_loose,  // says "complete" to a member, and lets the leader take it back
  leader_voids_alone,          // does not wait for a member to void
};

struct Setting {
  std::size_t members = 2;
  std::size_t faults = 1;  // links cut, ranks killed and deadlines passed
  Fault fault = Fault::none;
  std::size_t walks = 0;  // 0: every order; else so many random ones
};

enum class Word : std::uint8_t { stand, stop, decision, question };
struct Letter {
  Word word = Word::stand;
  Stand stand = Stand::receiving;
  bool commit = false;
  auto operator<=>(const Letter&) const = default;
};

/// One direction of a link and what its receiver knows of it.
struct Way {
  std::vector<Letter> under_way;
  bool cut = false, noticed = false;
  auto operator<=>(const Way&) const = default;
};

struct Subscriber {
  Ballot ballot{0, 0};
  bool alive = true;
  bool has_bytes = false;
  bool asks = false;      // the leader is lost, or wants to void what is pledged
  bool told_end = false;  // the leader and the other members
  auto operator<=>(const Subscriber&) const = default;
};

struct World {
  std::vector<Subscriber> subscribers;
  Tally tally{0};
  bool leader_alive = true, stop_sent = false, decision_sent = false;
  std::array<std::array<Way, most + 1>, most + 1> ways;  // from, to; the leader comes last
  std::size_t faults = 0;
  bool all_reach = true;  // no member died, and all links between members stand
  auto operator<=>(const World&) const = default;
};

class Model {
 public:
  explicit Model(const Setting& setting) : setting_(setting) {
    World first;
    for (std::size_t i = 0; i < setting.members; ++i)
      first.subscribers.push_back({.ballot = Ballot(setting.members, i)});
    first.tally = Tally(setting.members);
    for (std::size_t walk = 0; wrong.empty() && walk < setting.walks; ++walk) run(first);
    if (setting.walks > 0) return;
    visit(first);
    while (wrong.empty() && !open_.empty()) {
      const World world = open_.back();
      open_.pop_back();
      if (expand(world) == 0) check_end(world);
    }
  }
  std::size_t states() const { return seen_.size() + steps_; }
  std::string wrong;

 private:
  static constexpr std::size_t leader = most;

  void visit(const World& world) {
    if (setting_.walks == 0 && !seen_.insert(world).second) return;
    check(world);
    open_.push_back(world);
  }
  /// One random order, to its end, if it has one: members in doubt ask each other again and again.
  void run(World world) {
    constexpr int most_steps = 300;
    for (int step = 0; wrong.empty() && step < most_steps; ++step) {
      open_.clear();
      const bool over = expand(world) == 0;
      if (over) check_end(world);
      // After the last move a fault may still come, or not.
      if (open_.empty() || (over && random_() % 2 == 0)) return;
      world = open_[random_() % open_.size()];
      ++steps_;
    }
  }

  // What can happen next.

  std::size_t expand(const World& now) {
    moves_ = 0;
    for (std::size_t i = 0; i < now.subscribers.size(); ++i) expand_subscriber(now, i);
    expand_leader(now);
    for (std::size_t from = 0; from <= most; ++from)
      for (std::size_t to = 0; to <= most; ++to) expand_way(now, from, to);
    // Faults are no moves: at the end they may still come, or not.
    const std::size_t moves = moves_;
    if (now.faults < setting_.faults) expand_faults(now);
    return moves;
  }
  template <typename Change>
  void move(const World& now, Change&& change) {
    World next = now;
    change(next);
    if (next == now) return;
    ++moves_;
    visit(next);
  }

  static bool there(const World& world, std::size_t who) {
    return who == leader ? world.leader_alive
                         : who < world.subscribers.size() && world.subscribers[who].alive;
  }
  static void send(World& world, std::size_t from, std::size_t to, const Letter& letter) {
    Way& way = world.ways[from][to];
    if (!way.cut) way.under_way.push_back(letter);
  }
  static void tell_stand(World& world, std::size_t from, std::size_t to) {
    send(world, from, to, {Word::stand, world.subscribers[from].ballot.stand(), false});
  }
  /// As a subscriber does after whatever changed its ballot.
  void settle(World& world, std::size_t i) {
    Subscriber& self = world.subscribers[i];
    if (!self.ballot.settled() || self.told_end) return;
    self.told_end = true;
    tell_stand(world, i, leader);
    if (!std::exchange(self.asks, false)) return;
    for (std::size_t j = 0; j < world.subscribers.size(); ++j)
      if (j != i) tell_stand(world, i, j);
  }

  void expand_subscriber(const World& now, std::size_t i) {
    const Subscriber& self = now.subscribers[i];
    if (!self.alive) return;
    if (self.ballot.stand() == Stand::receiving) {
      move(now, [&](World& world) {
        world.subscribers[i].has_bytes = true;
        world.subscribers[i].ballot.complete();
        tell_stand(world, i, leader);
      });
      if (now.faults < setting_.faults)
        move(now, [&](World& world) {
          ++world.faults;
          world.subscribers[i].ballot.give_up();
          settle(world, i);
        });
    }
    if (self.asks && !self.ballot.settled())
      for (std::size_t j = 0; j < now.subscribers.size(); ++j)
        if (j != i && now.ways[i][j].under_way.empty() && now.ways[j][i].under_way.empty())
          move(now, [&](World& world) { send(world, i, j, {Word::question}); });
  }

  void expand_leader(const World& now) {
    if (!now.leader_alive) return;
    if (now.tally.settled() && !now.decision_sent)
      move(now, [&](World& world) { decide(world, now.tally.state() == Tally::State::committed); });
  }
  void decide(World& world, bool commit) {
    world.decision_sent = true;
    for (std::size_t i = 0; i < world.subscribers.size(); ++i)
      send(world, leader, i, {Word::decision, Stand::receiving, commit});
  }
  void stop(World& world) {
    world.tally.stop();
    if (world.tally.state() != Tally::State::stopping || world.stop_sent) return;
    world.stop_sent = true;
    for (std::size_t i = 0; i < world.subscribers.size(); ++i) send(world, leader, i, {Word::stop});
    if (setting_.fault == Fault::leader_voids_alone) decide(world, false);
  }

  void expand_way(const World& now, std::size_t from, std::size_t to) {
    const Way& way = now.ways[from][to];
    if (!there(now, to)) return;
    if (!way.under_way.empty() && !way.noticed)
      move(now, [&](World& world) {
        const Letter letter = world.ways[from][to].under_way.front();
        world.ways[from][to].under_way.erase(world.ways[from][to].under_way.begin());
        hear(world, from, to, letter);
      });
    if (way.cut && !way.noticed)
      move(now, [&](World& world) {
        world.ways[from][to].noticed = true;
        world.ways[from][to].under_way.clear();
        if (to == leader) stop(world);
        if (from == leader) lose_leader(world, to);
      });
  }
  void lose_leader(World& world, std::size_t i) {
    world.subscribers[i].ballot.leader_lost();
    world.subscribers[i].asks = true;
    settle(world, i);
  }
  void hear(World& world, std::size_t from, std::size_t to, const Letter& letter) {
    if (to == leader) return world.tally.told(from, letter.stand);
    Subscriber& self = world.subscribers[to];
    switch (letter.word) {
      case Word::stop:
        self.ballot.stop();
        if (self.ballot.stand() == Stand::pledged) {
          self.asks = true;
          tell_stand(world, to, leader);
        }
        break;
      case Word::decision:
        self.ballot.decided(letter.commit);
        break;
      case Word::question:
        if (setting_.fault == Fault::asked_keeps_its_vote_loose &&
            self.ballot.stand() == Stand::complete) {
          send(world, to, from, {Word::stand, Stand::pledged});
          return;
        }
        self.ballot.asked();
        tell_stand(world, to, from);
        break;
      case Word::stand:
        self.ballot.told(from, letter.stand);
        break;
    }
    settle(world, to);
  }

  void expand_faults(const World& now) {
    for (std::size_t i = 0; i < now.subscribers.size(); ++i) {
      if (!now.subscribers[i].alive) continue;
      move(now, [&](World& world) {
        ++world.faults;
        world.subscribers[i].alive = false;
        world.all_reach = false;
        for (std::size_t j = 0; j <= most; ++j) cut(world, i, j);
      });
      if (!now.ways[i][leader].cut)
        move(now, [&](World& world) {
          ++world.faults;
          cut(world, i, leader);
        });
      for (std::size_t j = i + 1; j < now.subscribers.size(); ++j)
        if (!now.ways[i][j].cut)
          move(now, [&](World& world) {
            ++world.faults;
            world.all_reach = false;
            cut(world, i, j);
          });
      // The deadline of a subscriber passes.
      if (now.subscribers[i].ballot.stand() == Stand::complete)
        move(now, [&](World& world) {
          ++world.faults;
          lose_leader(world, i);
        });
    }
    if (!now.leader_alive) return;
    if (now.tally.state() == Tally::State::open)
      move(now, [&](World& world) {
        ++world.faults;
        stop(world);
      });
    move(now, [&](World& world) {
      ++world.faults;
      world.leader_alive = false;
      for (std::size_t j = 0; j < most; ++j) cut(world, leader, j);
    });
  }
  static void cut(World& world, std::size_t a, std::size_t b) {
    world.ways[a][b].cut = world.ways[b][a].cut = true;
  }

  // What must hold.

  void check(const World& world) {
    bool committed = false, voided = false, all_have = true;
    for (const Subscriber& each : world.subscribers) {
      committed |= each.ballot.stand() == Stand::committed;
      voided |= each.ballot.stand() == Stand::voided;
      all_have &= each.has_bytes;
    }
    if (committed && voided) wrong = "one member committed and another voided the step";
    if (committed && !all_have) wrong = "a member committed a step that another does not have";
    if (world.tally.state() == Tally::State::committed && (voided || !all_have))
      wrong = "the leader says done, and a member does not have the step";
    if (world.tally.state() == Tally::State::voided && committed)
      wrong = "the leader says void, and a member committed";
  }
  /// Nothing is under way.
  void check_end(const World& world) {
    if (!world.all_reach) return;
    for (const Subscriber& each : world.subscribers)
      if (!each.ballot.settled()) wrong = "a member that reaches all others is left in doubt";
    const bool leader_reaches = world.leader_alive && [&] {
      for (std::size_t i = 0; i < world.subscribers.size(); ++i)
        if (!world.ways[i][leader].cut) return true;
      return false;
    }();
    if (leader_reaches && !world.tally.settled()) wrong = "the leader is left in doubt";
  }

  const Setting setting_;
  std::set<World> seen_;
  std::vector<World> open_;
  std::size_t moves_ = 0, steps_ = 0;
  std::mt19937_64 random_{1};
};

void expect_sound(const Setting& setting) {
  const Model model(setting);
  EXPECT_EQ(model.wrong, "");
  EXPECT_GT(model.states(), 50U) << "hardly anything was tried";
  testing::Test::RecordProperty("states", static_cast<int>(model.states()));
}

TEST(VoteModel, OneSubscriber) {
  expect_sound({.members = 1, .faults = 4});
}
TEST(VoteModel, TwoSubscribers) {
  expect_sound({.members = 2, .faults = 2});
}
TEST(VoteModel, ThreeSubscribers) {
  // Too many orders for all of them.
  expect_sound({.members = 3, .faults = 3, .walks = 10'000});
}

TEST(VoteModel, FindsTheVoteThatIsTakenBackAfterAMemberHasHeardOfIt) {
  EXPECT_EQ(Model({.members = 2, .faults = 2, .fault = Fault::asked_keeps_its_vote_loose}).wrong,
            "one member committed and another voided the step");
}
TEST(VoteModel, FindsTheLeaderThatVoidsByItself) {
  EXPECT_NE(Model({.members = 2, .faults = 2, .fault = Fault::leader_voids_alone}).wrong, "");
}

}  // namespace
}  // namespace weft::weights::test
