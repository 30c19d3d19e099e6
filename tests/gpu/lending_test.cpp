// Memory of a GPU's that another process has mapped: it is not free before that process has let go
// of it, or is dead.
#include <gmock/gmock.h>

#include <csignal>

#include "field.hpp"
#include "process.hpp"

namespace weft::test {
namespace {

constexpr std::size_t bytes = 10 * chunk + 7;
constexpr std::uint64_t borrowers_seed = 3;

std::string moved(Engine& engine, const Segment& own, const Remote& there, const std::string& how) {
  const auto pairs = whole(bytes);
  auto transfer = how == "write" ? engine.write(own, there, pairs) : engine.read(own, there, pairs);
  if (!transfer) return std::string(to_string(transfer.error().code()));
  const auto ended = transfer->wait_quiescent(soon());
  if (!ended) return std::string(to_string(ended.error().code()));
  return transfer->report().transport == TransportKind::device_copy ? "copied" : "another way";
}

/// PROVIDER ADDRESS: writes to "memory" and reads it when it is told to.
WEFT_ROLE(gpu_borrower) {
  Store store(1, bytes);
  Engine engine = must(Engine::open(gpu_config(arguments.at(0))));
  const Peer owner = must(engine.connect(arguments.at(1), soon()));
  const Remote there = must(owner.lookup("memory", soon()));
  const Segment own = must(engine.add(store.memory()));
  parent.say("ready");
  while (true) {
    const std::string order = parent.hear(Deadline::in(120s));
    if (order == "end") return 0;
    if (order == "regions") {
      parent.say(std::to_string(cuda_sim::weft_cuda_sim_regions()));
      continue;
    }
    store.put(pattern(bytes, borrowers_seed));
    parent.say(moved(engine, own, there, order));
  }
}

class Lending : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    cuda_sim::weft_cuda_sim_clear();
    store->put(pattern(bytes, 1));
    grant.emplace(must(segment->grant({}, Rights::read_write)));
    must(engine.publish("memory", *grant));
    borrower.emplace("gpu_borrower", std::vector<std::string>{GetParam(), engine.address()});
    ASSERT_EQ(borrower->hear(), "ready");
    ASSERT_EQ(borrower->ask("read"), "copied");
  }
  /// Frees the memory, which nobody may have mapped then.
  void expect_free() {
    ASSERT_EQ(must(grant->revoke(soon())), Revoked::quiescent);
    EXPECT_TRUE(succeeds(segment->release(soon())));
    segment.reset();
    store.reset();
    EXPECT_EQ(cuda_sim::counters().freed_while_open, 0U);
  }
  static Config config() {
    Config config = gpu_config(GetParam());
    config.heartbeat = 100ms;
    config.death_after = 2s;
    return config;
  }

  std::optional<Store> store{std::in_place, 0, bytes};
  Engine engine = must(Engine::open(config()));
  std::optional<Segment> segment = must(engine.add(store->memory()));
  std::optional<Grant> grant;
  std::optional<Child> borrower;
};

TEST_P(Lending, EndsBeforeTheMemoryIsFreed) {
  EXPECT_EQ(borrower->ask("write"), "copied");
  EXPECT_TRUE(same_bytes(store->bytes(), pattern(bytes, borrowers_seed)));
  expect_free();
  EXPECT_EQ(borrower->ask("write"), "stale");
  borrower->say("end");
  EXPECT_EQ(borrower->join(), 0);
}

TEST_P(Lending, EndsBeforeTheEngineIsClosed) {
  EXPECT_TRUE(succeeds(engine.close(soon())));
  store.reset();
  EXPECT_EQ(cuda_sim::counters().freed_while_open, 0U);
  EXPECT_EQ(borrower->ask("write"), "peer_down");
}

TEST_P(Lending, ToOneWhoIsFrozenOutlivesTheEngine) {
  borrower->signal(SIGSTOP);
  EXPECT_TRUE(fails_with(engine.close(Deadline::in(1s)), Code::quarantined));
}

TEST_P(Lending, IsOverWhenItsOwnerHasDisconnected) {
  // It has no core for longer than operations to a peer get to drain.
  borrower->signal(SIGSTOP);
  std::jthread later([&] {
    std::this_thread::sleep_for(300ms);
    borrower->signal(SIGCONT);
  });
  must(engine.peers().front().disconnect());
  EXPECT_NE(borrower->ask("write"), "copied");
  expect_free();
}

TEST_P(Lending, IsNotKeptByABorrowerWhoIsCutOff) {
  const auto mapped = std::stoul(borrower->ask("regions"));
  borrower->signal(SIGSTOP);
  const Deadline deadline = soon();
  while (!engine.peers().empty() && !deadline.passed()) std::this_thread::yield();
  borrower->signal(SIGCONT);
  while (std::stoul(borrower->ask("regions")) == mapped && !deadline.passed())
    std::this_thread::yield();
  EXPECT_EQ(std::stoul(borrower->ask("regions")), mapped - 1);
  EXPECT_EQ(borrower->ask("write"), "peer_down");
}

TEST_P(Lending, ToOneWhoIsDeadIsOver) {
  borrower->kill();
  expect_free();
}

TEST_P(Lending, ToOneWhoIsFrozenIsNotOverBeforeHeIsDead) {
  borrower->signal(SIGSTOP);
  EXPECT_EQ(must(grant->revoke(Deadline::in(200ms))), Revoked::quarantined);
  // The link is given up, and with it the hope that he will confirm.
  const Deadline deadline = soon();
  while (!engine.peers().empty() && !deadline.passed()) std::this_thread::yield();
  ASSERT_TRUE(engine.peers().empty());
  EXPECT_EQ(must(grant->revoke(Deadline::in(200ms))), Revoked::quarantined);
  EXPECT_EQ(must(grant->fence(Deadline::in(200ms))), Revoked::quarantined)
      << "no key is in his way";
  EXPECT_TRUE(fails_with(segment->release(Deadline::in(200ms)), Code::quarantined));
  borrower->kill();
  expect_free();
}

INSTANTIATE_TEST_SUITE_P(Gpu, Lending, testing::ValuesIn(all_providers()),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace weft::test
