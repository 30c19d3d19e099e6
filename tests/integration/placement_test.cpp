// On two cores: which rails carry what, and the threads of those over sockets: both ends of each on
// one core while much moves, apart while little does.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "base/pace.hpp"
#include "base/turns.hpp"
#include "engines.hpp"
#include "forwarding.hpp"
#include "one_core.hpp"
#include "rail/worker.hpp"
#include "topo/machine.hpp"

namespace weft::test {
namespace {

/// This process has two cores while it lives.
class TwoCores {
 public:
  TwoCores() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (std::size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &two);
    sched_setaffinity(0, sizeof two, &two);
  }
  ~TwoCores() { sched_setaffinity(0, sizeof before_, &before_); }
  TwoCores(const TwoCores&) = delete;
  TwoCores& operator=(const TwoCores&) = delete;

 private:
  cpu_set_t before_{};
};

/// How many of this process's threads are kept on each core; those that have several are left out.
std::map<std::size_t, int> kept_threads() {
  std::map<std::size_t, int> kept;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const pid_t id = std::stoi(task.path().filename());
    cpu_set_t cores;
    if (sched_getaffinity(id, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) != 1) continue;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &cores)) ++kept[core];
  }
  return kept;
}

/// How many of this process's threads have asked for short turns.
int threads_with_short_turns() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    core::SchedulingAttributes told{};
    const pid_t id = std::stoi(task.path().filename());
    if (syscall(SYS_sched_getattr, id, &told, sizeof told, 0) == 0 &&
        told.runtime == core::short_turn)
      ++count;
  }
  return count;
}

constexpr std::uint64_t part = 128 << 10;

/// A rail that nothing holds back, whatever this machine's kernel does with sockets.
class UnpacedEndpoint final : public ForwardingEndpoint {
 public:
  explicit UnpacedEndpoint(std::unique_ptr<providers::Endpoint> real)
      : ForwardingEndpoint(std::move(real)), record_(inner().capability()) {
    record_.tuning.few_cores.part = part;
  }
  const Capability& capability() const noexcept override { return record_; }

 private:
  Capability record_;
};

class Placement : public testing::Test {
 protected:
  void SetUp() override {
    if (topo::cores().usable() < 2) GTEST_SKIP() << "one core";
    two_.emplace();
    if (topo::cores().usable() != 2) GTEST_SKIP() << "two units of one core";
  }

  void TearDown() override {
    if (crowded_) GTEST_SKIP() << "others compute on these cores";
  }

  static Config sockets() { return config_for("tcp", 0); }
  static constexpr std::size_t bytes = 8 << 20;

  /// Writes pieces so long one by one, until the threads are kept so: they are not while others
  /// compute.
  bool come_to(Couple& pair, Board& board, std::size_t piece, std::vector<int> wanted) {
    std::vector<int> kept;
    const Deadline deadline = Deadline::in(10s);
    while (kept != wanted && !deadline.passed()) {
      const Pair all[] = {{0, 0, piece}};
      Transfer transfer = must(pair.a.write(board.local, board.there, all));
      EXPECT_TRUE(succeeds(transfer.wait(soon())));
      kept.clear();
      for (const auto& [core, threads] : kept_threads()) kept.push_back(threads);
    }
    if (kept != wanted) crowded_ = longest_away() >= core::CpuPressure::slice;
    return kept == wanted || crowded_;
  }

 private:
  std::optional<TwoCores> two_;
  bool crowded_ = false;
};

TEST_F(Placement, BothEndsOfAStreamMeetOnOneCore) {
  Couple pair = couple(sockets());
  Board board(pair, bytes, bytes);
  for (const std::size_t piece : {bytes, std::size_t{4096}})
    EXPECT_TRUE(come_to(pair, board, piece, {2, 2})) << piece;
  const Pair all[] = {{0, 0, bytes}};
  board.expect_pieces(Direction::write, all);
}

TEST(ShortTurns, ThreadsThatPeersWaitForHaveThem) {
  int known = 0;
  std::thread([&] {
    core::take_short_turns();
    known = threads_with_short_turns();
  }).join();
  if (known == 0) GTEST_SKIP() << "this kernel knows none";
  Config config = config_for("tcp", 0);
  config.threads = 1;
  const Engine engine = must(Engine::open(config));
  // Upkeep, control and its setup ask once they run; the progress thread only beside others.
  EXPECT_TRUE(comes_to_be([] { return threads_with_short_turns() >= 3; }));
}

TEST_F(Placement, ThreadsAreLeftAloneWhereThatIsWanted) {
  Config config = sockets();
  config.place_threads = false;
  Couple pair = couple(config);
  Board board(pair, bytes, bytes);
  const Pair all[] = {{0, 0, bytes}};
  board.expect_moved(Direction::write, all);
  EXPECT_TRUE(kept_threads().empty());
}

TEST_F(Placement, ThreadsOfAnOpenerThatIsBoundToOneCoreHaveOthers) {
  const OneCore bound;
  if (!bound.kept()) GTEST_SKIP() << "threads can't be kept on one core here";
  const auto others_kept = [](const Config& config) {
    const Couple pair = couple(config);
    int all = 0;
    for (const auto& [core, threads] : kept_threads()) all += threads;
    return all - 1;  // this one
  };
  EXPECT_EQ(others_kept(config_for("shm")), 0);
  Config stay = config_for("shm");
  stay.place_threads = false;
  EXPECT_GT(others_kept(stay), 0);
}

TEST_F(Placement, AThreadThatGetsNoCoreIsGivenOthers) {
  core::Worker worker(100us);
  must(worker.start({.numa_node = -1, .core = 0}));
  const auto comes_to = [](std::size_t kept) {
    const Deadline deadline = soon();
    while (kept_threads().size() != kept && !deadline.passed()) std::this_thread::sleep_for(1ms);
    return kept_threads().size() == kept;
  };
  worker.post([] {});
  EXPECT_TRUE(comes_to(1));
  worker.free_core();
  EXPECT_TRUE(comes_to(0));
  worker.post([] {});
  EXPECT_TRUE(worker.run([] {}, soon()));
  EXPECT_TRUE(comes_to(0)) << "it keeps to none any more";
}

TEST_F(Placement, AnEngineLeavesItsCallersWhereTheyWere) {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  {
    Couple pair = couple(sockets());
    Board board(pair, bytes, bytes);
    EXPECT_TRUE(come_to(pair, board, bytes, {2, 2}));
    sched_getaffinity(0, sizeof after, &after);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
  }
  EXPECT_TRUE(kept_threads().empty());
}

TEST_F(Placement, OverSocketsBothRailsCarryPartsOfWhatMeetsNoOther) {
  Couple pair = wrapped<UnpacedEndpoint>([] { return couple(sockets()); });
  Board board(pair, bytes, bytes);
  const auto write = [&](std::size_t length) {
    const Pair piece[] = {{0, 0, length}};
    return must(pair.a.write(board.local, board.there, piece));
  };
  const auto operations_of = [&](std::size_t length) {
    Transfer transfer = write(length);
    EXPECT_TRUE(succeeds(transfer.wait(soon())));
    return transfer.report().operations;
  };
  // The one before may not be quite over for its rail when it is for who waits.
  const auto comes_to = [&](std::size_t length, std::uint64_t wanted) {
    const Deadline deadline = soon();
    while (operations_of(length) != wanted)
      if (deadline.passed()) return false;
    return true;
  };
  EXPECT_EQ(operations_of(2 * part - 1), 1U);
  EXPECT_TRUE(comes_to(2 * part, 2));
  EXPECT_TRUE(comes_to(4 * part + 7, 2));

  // Beside another.
  const Deadline deadline = soon();
  bool met = false;
  while (!met && !deadline.passed()) {
    Transfer large = write(bytes), small = write(2 * part);
    met = large.state() == State::active;
    EXPECT_TRUE(succeeds(small.wait(soon())));
    EXPECT_TRUE(!met || small.report().operations == 1);
    EXPECT_TRUE(succeeds(large.wait(soon())));
  }
  EXPECT_TRUE(met);

  board.repaint();
  for (const Pair& piece : {Pair{0, 0, 2 * part}, Pair{9, 1, 4 * part + 7}})
    for (const Direction direction : {Direction::write, Direction::read})
      board.expect_moved(direction, {&piece, 1});
}

TEST_F(Placement, OverShmOneRailCarriesWhatIsMappedAndTwoTheRest) {
  const auto rails_of = [](Memory memory) {
    Couple pair = couple(config_for("shm", 0));
    EXPECT_EQ(pair.a.info().rails.size(), 2U);
    Board board(pair, Memory::shared(bytes), std::move(memory));
    const Pair all[] = {{0, 0, bytes}};
    for (const Direction direction : {Direction::write, Direction::read})
      board.expect_moved(direction, all);
    const Path path = must(pair.a.explain(board.local, board.there, Direction::write));
    return path.rails.size();
  };
  EXPECT_EQ(rails_of(Memory::shared(bytes)), 1U);
  EXPECT_EQ(rails_of(Memory::own(bytes)), 2U);
}

}  // namespace
}  // namespace weft::test
