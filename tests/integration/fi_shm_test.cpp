// libfabric's shm, which engines take only when it is asked for by name: that it works, and what it
// does to the process and the machine around it.
#include <signal.h>

#include <array>

#include "engines.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

constexpr Pair thousand[] = {{0, 0, 1000}};

/// Whether libfabric's shm can't do it between two engines of one process
/// (providers/libfabric/fi_shm.cpp).
bool crashes_within_a_process() {
  const Engine engine = must(Engine::open(config_for("fi_shm")));
  unsigned major = 0, minor = 0;
  const std::string version = engine.info().rails.front().capability.libfabric_version;
  std::sscanf(version.c_str(), "%u.%u", &major, &minor);
  return std::pair(major, minor) >= std::pair(2u, 5u);
}

TEST(FiShm, IsTakenOnlyByName) {
  Engine engine = must(Engine::open(Config{}));
  for (const RailInfo& rail : engine.info().rails) EXPECT_FALSE(rail.name.starts_with("fi_shm"));
}

TEST(FiShm, RefusesWhatWouldCrash) {
  if (!crashes_within_a_process()) GTEST_SKIP() << "this libfabric does not crash";
  Engine a = must(Engine::open(config_for("fi_shm")));
  Engine b = must(Engine::open(config_for("fi_shm")));
  EXPECT_TRUE(fails_with(a.connect(b.info().address, soon()), Code::unavailable));
}

TEST(FiShm, MovesEveryByteBothWays) {
  if (crashes_within_a_process())
    GTEST_SKIP() << "libfabric's shm crashes between two engines of one process, from 2.5 on";
  for (const TransportKind transport : {TransportKind::one_sided, TransportKind::bounce}) {
    Couple pair = couple(config_for(Variant{"fi_shm", transport}));
    EXPECT_TRUE(pair.to_b.rails().front().starts_with("fi_shm"));
    Board board(pair, 3'000'000, 3'000'000);
    const Pair pieces[] = {{1, 2, 1'600'000}, {1'700'000, 1'650'001, 1'200'000}};
    board.expect_moved(Direction::write, pieces);
    board.repaint();
    board.expect_moved(Direction::read, pieces);
    must(pair.to_b.signal({1}, soon()));
    EXPECT_TRUE(succeeds(must(pair.to_a.expect(1, 1)).wait(soon())));
  }
}

// Linux's SA_RESTORER: in the flags of all signals that were ever set, to whatever.
constexpr int set_by_libc = 0x04000000;

std::array<struct sigaction, 65> handlers() {
  std::array<struct sigaction, 65> all{};
  for (int number = 1; number < 65; ++number)
    sigaction(number, nullptr, &all[static_cast<std::size_t>(number)]);
  return all;
}

void expect_same(const std::array<struct sigaction, 65>& before) {
  const auto now = handlers();
  for (std::size_t number = 1; number < before.size(); ++number) {
    EXPECT_EQ(now[number].sa_handler, before[number].sa_handler) << strsignal(int(number));
    EXPECT_EQ(now[number].sa_flags & ~set_by_libc, before[number].sa_flags & ~set_by_libc)
        << strsignal(int(number));
  }
}

TEST(SignalHandlers, AreTheApplicationsOwn) {
  // One that the application set, beside those it did not.
  const auto old = signal(SIGTERM, [](int) {});
  const auto before = handlers();
  {
    Engine engine = must(Engine::open(config_for("fi_shm")));
    expect_same(before);
  }
  expect_same(before);
  if (!crashes_within_a_process()) {
    Couple pair = couple(config_for("fi_shm"));
    Board board(pair, 1000, 1000);
    board.expect_moved(Direction::write, thousand);
    expect_same(before);
  }
  expect_same(before);
  Config everything;
  Engine engine = must(Engine::open(everything));
  expect_same(before);
  signal(SIGTERM, old);
}

/// Dies of SIGTERM, by default, with an engine open.
WEFT_ROLE(mortal) {
  // Debian's libfabric brings a library along that handles this signal from the start.
  signal(SIGTERM, SIG_DFL);
  Engine engine = must(Engine::open(config_for("fi_shm")));
  parent.say("up");
  parent.hear(soon());
  return 0;
}

TEST(SignalHandlers, SigtermStillKillsAndTheNextEngineCleansUp) {
  Child child("mortal");
  ASSERT_EQ(child.hear(), "up");
  EXPECT_FALSE(regions_of(child.pid()).empty());
  child.signal(SIGTERM);
  EXPECT_EQ(child.join(), -SIGTERM);
  Engine next = must(Engine::open(config_for("fi_shm")));
  EXPECT_TRUE(regions_of(child.pid()).empty());
}

}  // namespace
}  // namespace weft::test
