// What ends by itself does so in its time however seldom the heart beats, and although a progress
// thread is stuck.
#include <functional>

#include "engines.hpp"
#include "forwarding.hpp"

namespace weft::test::upkeep_tests {
namespace {

constexpr auto term = 300ms;
// Upkeep comes round every 100 ms; the rest is for a loaded machine. Far less than a heartbeat.
constexpr auto in_time = 5s;

/// Transports whose progress thread is stuck in the provider for as long as a test wants.
class Stuck {
 public:
  ~Stuck() { let_go(); }
  void let_go() {
    state_->free = true;
    state_->free.notify_all();
  }
  core::EngineHooks hooks() const { return hooks_wrapping<Sticking>(state_); }

 private:
  struct State {
    std::atomic<bool> free{false};
  };
  class Sticking final : public ForwardingPosts {
   public:
    Sticking(core::Transport& inner, std::shared_ptr<State> state)
        : ForwardingPosts(inner), state_(std::move(state)) {}
    providers::Post post(core::Op& op) override {
      state_->free.wait(false);
      return pass_on(op);
    }

   private:
    const std::shared_ptr<State> state_;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class Upkeep : public testing::TestWithParam<Variant> {
 protected:
  Upkeep() {
    config.heartbeat = 60s;
    config.death_after = 300s;
    config.inline_copy_bytes = 0;  // no caller gets stuck in the thread's stead
  }
  /// Whether it comes true in time.
  static bool comes_true(const std::function<bool()>& fact) {
    const Deadline deadline = Deadline::in(in_time);
    while (!fact() && !deadline.passed()) std::this_thread::sleep_for(10ms);
    return fact();
  }

  static constexpr std::size_t bytes = 4096;
  Config config = config_for(GetParam());
};

TEST_P(Upkeep, LeasesEndInTimeBetweenTwoHeartbeats) {
  Couple pair = couple(config, config);
  Segment segment = must(pair.b.add(Memory::own(bytes)));
  Grant grant = must(segment.grant({}, Rights::read, term));
  must(pair.b.publish("memory", grant));
  EXPECT_TRUE(comes_true([&] { return fails_with(pair.b.publish("memory", grant), Code::stale); }));
}

TEST_P(Upkeep, WaitsEndInTimeBetweenTwoHeartbeats) {
  Couple pair = couple(config, config);
  const Expectation signals = must(pair.to_b.expect(1, 1, {.deadline = Deadline::in(term)}));
  const Receive message =
      must(pair.to_b.receive(1, ~std::uint64_t{0}, {.deadline = Deadline::in(term)}));
  EXPECT_TRUE(comes_true([&] { return signals.ready() && message.ready(); }));
}

TEST_P(Upkeep, OverdueTransfersEndInTimeAlthoughTheirThreadIsStuck) {
  Stuck stuck;
  Couple pair = couple(config, config, stuck.hooks());
  Board board(pair, bytes, bytes);
  const Pair all[] = {{0, 0, bytes}};
  Transfer transfer = must(board.submit(Direction::write, all, {.deadline = Deadline::in(term)}));
  EXPECT_TRUE(comes_true([&] { return transfer.state() == State::timed_out; }));
  stuck.let_go();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
}

INSTANTIATE_TEST_SUITE_P(All, Upkeep, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test::upkeep_tests
