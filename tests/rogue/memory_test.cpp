// Reads and writes by somebody who never met the engine, but has one of its keys and knows its
// rails: what the provider refuses, and what it lets through. tools/docs/security.md has the table.
#include <cstdio>

#include "scene.hpp"

namespace weft::test {
namespace {

constexpr std::size_t piece = 4096;
// Two granted ranges; a key covers the hull of both, and so what lies between them.
constexpr Range granted[] = {{8192, 4096}, {24576, 4096}};
constexpr std::uint64_t hull = 8192, hull_bytes = 20480, between = 8192;

enum class Verdict {
  let_through,
  refused,  // and the initiator hears of it
  // By the provider in the target's process: the initiator hears nothing, and libfabric follows an
  // uninitialised pointer on the way (1.17, prov/efa/src/rxr/rxr_rma.c: rxr_rma_verified_copy_iov),
  // which may end the process.
  refused_at_a_risk,
  refused_silently,  // the initiator can't tell
};

class RogueMemory : public testing::TestWithParam<std::tuple<std::string, Direction>> {
 protected:
  RogueMemory() : scene(std::get<0>(GetParam())) {}

  const Direction direction = std::get<1>(GetParam());
  const char* verb() const { return direction == Direction::write ? "write" : "read"; }
  Aim grant(Rights rights = Rights::read_write) { return scene.grant(granted, rights); }

  /// What becomes of operations that a key does not allow.
  Verdict verdict() const {
    const Capability& rail = scene.capability();
    if (!rail.keys_enforced) return Verdict::let_through;
    const Origin origin = direction == Direction::write ? rail.write : rail.read;
    if (origin == Origin::emulated) return Verdict::refused_at_a_risk;
    return rail.same_host_only ? Verdict::refused_silently : Verdict::refused;
  }

  static std::chrono::milliseconds patience(Verdict verdict) {
    switch (verdict) {
      case Verdict::refused_at_a_risk:
        return 300ms;  // the end is waited for in another way
      case Verdict::refused_silently:
        return 3s;
      default:
        return 30s;
    }
  }

  void expect_let_through(Aim aim, std::uint64_t offset) {
    aim.address += offset;
    const Ending ending = scene.attack(verb(), aim, piece, 30s);
    tell(ending);
    EXPECT_EQ(ending.how, Ending::done);
    scene.expect_moved(direction, hull + offset, piece);
    scene.expect_friends_served();
    scene.end();
  }

  /// Whether the target has to know the initiator. NICs of efa-direct take reads and writes only
  /// from those whose address was inserted there.
  bool knows_initiators() const { return scene.fabric() == "efa-direct"; }

  /// Refused where keys are enforced; elsewhere nobody looks.
  void expect_refused(Aim aim, std::uint64_t offset) {
    const Verdict expected = verdict();
    if (expected == Verdict::let_through) return expect_let_through(aim, offset);
    aim.address += offset;
    const Ending ending = scene.attack(verb(), aim, piece, patience(expected));
    if (expected == Verdict::refused) {
      EXPECT_EQ(ending.how, Ending::refused);
    }
    if (expected == Verdict::refused_at_a_risk) scene.await_dealt_with();
    tell(ending);
    scene.expect_untouched();
    if (scene.victim().ended()) {
      EXPECT_EQ(expected, Verdict::refused_at_a_risk);
      EXPECT_NE(scene.victim().join(), 0);
      return;
    }
    scene.expect_friends_served();
    scene.expect_untouched();
    scene.end();
  }

  void tell(const Ending& ending) {
    constexpr const char* how[] = {"ended well", "failed", "did not end"};
    std::printf("to the initiator it %s (%d)%s\n", how[ending.how], ending.error,
                scene.victim().ended() ? "; the victim's process ended" : "");
  }

  Scene scene;
};

TEST_P(RogueMemory, AStolenKeyServesWhoeverHasIt) {
  knows_initiators() ? expect_refused(grant(), 0) : expect_let_through(grant(), 0);
}

TEST_P(RogueMemory, BetweenTheRangesOfAGrantNobodyLooks) {
  knows_initiators() ? expect_refused(grant(), between) : expect_let_through(grant(), between);
}

TEST_P(RogueMemory, AGuessedKey) {
  Aim aim = grant();
  aim.key ^= 8;
  expect_refused(aim, 0);
}

TEST_P(RogueMemory, ARangeThatCrossesTheEndOfTheGrant) {
  expect_refused(grant(), hull_bytes - piece / 2);
}

TEST_P(RogueMemory, ARangeBehindTheGrant) {
  expect_refused(grant(), hull_bytes + piece);
}

TEST_P(RogueMemory, ARangeBeforeTheGrant) {
  expect_refused(grant(), 0 - std::uint64_t{piece});
}

TEST_P(RogueMemory, AKeyForTheOtherDirection) {
  expect_refused(grant(direction == Direction::write ? Rights::read : Rights::write), 0);
}

TEST_P(RogueMemory, AKeyThatWasRevoked) {
  const Aim aim = grant();
  ASSERT_EQ(scene.victim().ask("revoke"), "yes");
  expect_refused(aim, 0);
}

TEST_P(RogueMemory, AKeyOfAReleasedSegment) {
  const Aim aim = grant();
  ASSERT_EQ(scene.victim().ask("release"), "yes");
  expect_refused(aim, 0);
}

/// libfabric's own check of ranges (1.17, prov/util/src/util_mr_map.c: ofi_mr_map_verify) adds
/// without looking for an overflow: it can be led anywhere behind the start of a grant. Where it is
/// not asked, or does look, nothing moves.
TEST_P(RogueMemory, ALengthThatWrapsAroundMovesTheseBytesAtMost) {
  if (!scene.capability().keys_enforced) GTEST_SKIP() << "nobody looks at keys or ranges anyway";
  constexpr std::size_t several_packets = 16384;
  const std::uint64_t offset = hull_bytes + piece;
  Aim aim = grant();
  aim.address += offset;
  aim.length = hull_bytes - offset;  // modulo 2^64: it ends where the grant does
  const Ending ending = scene.attack(verb(), aim, several_packets, 3s);
  tell(ending);
  // A provider that takes in what arrives piece by piece may have begun before it saw the length.
  const std::size_t moved = scene.count_moved(direction, hull + offset, several_packets);
  std::printf("%zu bytes moved\n", moved);
  scene.expect_moved(direction, hull + offset, moved);
  if (scene.victim().ended()) {
    EXPECT_EQ(verdict(), Verdict::refused_at_a_risk);
    return;
  }
  scene.expect_friends_served();
  scene.end();
}

INSTANTIATE_TEST_SUITE_P(All, RogueMemory,
                         testing::Combine(testing::ValuesIn(all_providers()),
                                          testing::Values(Direction::write, Direction::read)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == Direction::write ? "_write"
                                                                               : "_read");
                         });

}  // namespace
}  // namespace weft::test
