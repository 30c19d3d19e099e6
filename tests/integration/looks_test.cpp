// A thread that looks for an end makes the steps of a progress thread, which leaves them to it and
// goes on when it stops.
#include <atomic>
#include <thread>

#include "engines.hpp"
#include "rail/worker.hpp"

namespace weft::test {
namespace {

/// By which thread a task was run.
class Task {
 public:
  explicit Task(core::Worker& worker) {
    worker.post([by = by_] { by->store(std::this_thread::get_id()); });
  }
  std::thread::id by() const { return by_->load(); }
  bool run() const { return by() != std::thread::id(); }

 private:
  const std::shared_ptr<std::atomic<std::thread::id>> by_ =
      std::make_shared<std::atomic<std::thread::id>>();
};

void look_closely(core::Worker& worker) {
  for (int i = 0; i < 100; ++i) worker.drive(Clock::now());
}

TEST(Looks, WhoLooksMakesTheSteps) {
  core::Worker worker(0us);
  must(worker.start({}));
  int by_this_thread = 0;
  for (int i = 0; i < 100; ++i) {
    look_closely(worker);
    const Task task(worker);
    while (!task.run()) worker.drive(Clock::now());
    by_this_thread += task.by() == std::this_thread::get_id() ? 1 : 0;
  }
  // This thread may have been without a core in between.
  EXPECT_GT(by_this_thread, 50);
}

TEST(Looks, TheThreadGoesOnWhenNobodyLooksAnyMore) {
  core::Worker worker(0us);
  must(worker.start({}));
  for (const bool says_so : {false, true}) {
    look_closely(worker);
    if (says_so) worker.hand_over();
    const Task task(worker);
    const Deadline deadline = soon();
    while (!task.run() && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(task.run());
    EXPECT_NE(task.by(), std::this_thread::get_id());
  }
}

TEST(Looks, NobodyMakesAStepAfterTheLast) {
  core::Worker worker(0us);
  must(worker.start({}));
  worker.stop();
  const Task task(worker);
  EXPECT_EQ(worker.drive(Clock::now()), 0U);
  EXPECT_FALSE(worker.run_here([] {}));
  EXPECT_FALSE(task.run());
  worker.settle();
  EXPECT_TRUE(task.run());
}

class LooksOverProviders : public testing::TestWithParam<std::string> {};

/// By waits whose deadline has passed, on both sides, and by the rest of the API meanwhile.
TEST_P(LooksOverProviders, MoveEverything) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, 3 << 20, 3 << 20);
  const Pair pieces[] = {{1, 3, 2 << 20}, {(2 << 20) + 9, (2 << 20) + 4, 77'777}};
  for (int round = 0; round < 20; ++round) {
    board.repaint();
    TransferOptions options;
    options.signal = Signal{4};
    Transfer transfer = must(pair.a.write(board.local, board.there, pieces, options));
    Expectation signal = must(pair.to_a.expect(4, 1));
    const Deadline deadline = soon();
    while (!(transfer.wait(Deadline::now()) && signal.ready()) && !deadline.passed())
      must(pair.b.progress());
    EXPECT_EQ(transfer.state(), State::done);
    EXPECT_EQ(must(signal.wait(Deadline::now())).count, 1U);
    board.expect_pieces(Direction::write, pieces);
  }
  EXPECT_EQ(must(board.grant.revoke(soon())), Revoked::quiescent);
}

INSTANTIATE_TEST_SUITE_P(Providers, LooksOverProviders, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
