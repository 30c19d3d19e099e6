// Nothing grows: not by transfers, not by messages, not by peers that come and go.
#include <sys/prctl.h>

#include <cstdlib>
#include <deque>

#include "engines.hpp"
#include "gate.hpp"
#include "process.hpp"
#include "providers/sanitizer.hpp"

namespace weft::test {
namespace {

// Under a sanitizer freed memory stays resident for a while.
constexpr bool memory_counts = !providers::sanitized;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// `usual`, or fewer where memory does not count: a leak of a few bytes takes many rounds to show,
/// and one of a descriptor or a thread few.
std::uint64_t times(std::uint64_t usual) {
  if (long_forms()) return 20 * usual;
  return memory_counts ? usual : usual / 10;
}

/// What the process holds besides memory.
struct Holdings {
  std::size_t descriptors = count_descriptors();
  std::size_t threads = count_threads();
  std::size_t regions = regions_of(getpid()).size();
};

/// Providers may keep sockets of the very last peers; a leak would be one for each round.
constexpr std::size_t kept_descriptors = 4;

void expect_no_leak(const Holdings& before) {
  const std::size_t most = before.descriptors + kept_descriptors;
  const auto descriptors = descriptors_down_to(most);
  EXPECT_LE(descriptors.size(), most) << testing::PrintToString(descriptors);
  const auto threads = threads_down_to(before.threads);
  EXPECT_LE(threads.size(), before.threads) << testing::PrintToString(threads);
  const auto regions = regions_of(getpid());
  EXPECT_EQ(regions.size(), before.regions) << testing::PrintToString(regions);
}

/// Bytes by which resident memory may grow while nothing leaks.
std::size_t memory_slack() {
  // efa and ofi_rxm grow their pools of packets with what was once under way, by some 16 MiB at a
  // time (1.17, prov/rxm/src/rxm_ep.c: rxm_ep_create_pools).
  const std::string provider = all_providers().front();
  const bool pools = provider == "efa" || provider == "tcp;ofi_rxm";
  return (pools ? 40 : 4) * mebibyte;
}

/// Repeats work that was done before, and expects the process to hold no more. Resident memory may
/// grow by more than `slack` bytes now and then, as by an arena of the allocator, or what a busy
/// machine has not caught up with. A leak does so each time.
template <typename Work>
void expect_no_growth(Work&& work, std::size_t slack = memory_slack()) {
  constexpr std::size_t most_times = 10;
  const Holdings before;
  std::vector<std::size_t> resident = {resident_bytes()};
  const auto grew = [&] { return memory_counts && resident.back() > resident.end()[-2] + slack; };
  do {
    work();
    resident.push_back(resident_bytes());
  } while (grew() && resident.size() <= most_times);
  EXPECT_FALSE(grew()) << "resident bytes: " << testing::PrintToString(resident);
  expect_no_leak(before);
}

/// Without huge pages. With them one byte makes 2 MiB resident, and memory that was freed or never
/// used counts as growth (on machines with transparent_hugepage/enabled at "always").
template <typename Parameter>
class WithSmallPages : public testing::TestWithParam<Parameter> {
 protected:
  WithSmallPages() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }
};

class Steady : public WithSmallPages<Variant> {};

TEST_P(Steady, SmallTransfers) {
  constexpr std::size_t at_once = 64, bytes = 512;
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, at_once * bytes, at_once * bytes);
  std::vector<Pair> pieces;
  for (std::size_t i = 0; i < at_once; ++i) pieces.push_back({i * bytes, i * bytes, bytes});
  const Prepared write = must(pair.a.prepare(board.local, board.there, Direction::write, pieces));
  const auto run = [&](std::size_t count) {
    std::deque<Transfer> transfers;
    for (std::size_t i = 0; i < count; ++i) {
      if (transfers.size() == at_once) {
        must(transfers.front().wait(soon()));
        transfers.pop_front();
      }
      const std::uint32_t pick[] = {static_cast<std::uint32_t>(i % at_once)};
      transfers.push_back(must(pair.a.submit(write, pick)));
    }
    for (Transfer& transfer : transfers) must(transfer.wait(soon()));
  };
  const std::size_t count = times(50'000);
  run(count / 5);
  expect_no_growth([&] { run(count); });
  board.expect_pieces(Direction::write, pieces);
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
}

TEST_P(Steady, SignalsAndMessages) {
  Couple pair = couple(config_for(GetParam()));
  const Blob text = pattern(100, 1);
  const auto run = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      must(pair.to_b.signal({i, text}, soon()));
      must(pair.to_b.send(i, text, soon()));
      must(must(pair.to_a.expect(i, 1)).wait(soon()));
      must(pair.to_a.recv(i, ~0ULL, soon()));
    }
  };
  run(times(1'000));
  expect_no_growth([&] { run(times(5'000)); });
}

// Field fault: what is told of signals that won't come was kept for ever.
TEST_P(Steady, SignalsOfCancelledWrites) {
  Gate gate;
  Config config = config_for(GetParam());
  config.unclaimed_bytes = 1 << 20;
  Couple pair = couple(config, config, gate.hooks());
  Board board(pair, 100, 100);
  must(pair.b.publish("board", board.grant));
  const Pair piece[] = {{0, 0, 100}};
  const Prepared write = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  std::uint64_t next = 0;
  const auto run = [&](std::uint64_t count) {
    // So that neither side has much to catch up with.
    constexpr std::size_t at_once = 64;
    std::deque<Transfer> cancelled;
    const auto settle = [&] {
      EXPECT_TRUE(fails_with(cancelled.front().wait_quiescent(soon()), Code::cancelled));
      cancelled.pop_front();
    };
    for (std::uint64_t i = 0; i < count; ++i, ++next) {
      TransferOptions options;
      options.signal = Signal{next};
      cancelled.push_back(must(pair.a.submit(write, options)));
      cancelled.back().cancel();
      if (cancelled.size() == at_once) settle();
      // The answer comes after what was told before.
      if (next % 1000 == 0) must(pair.to_b.lookup("board", soon()));
    }
    while (!cancelled.empty()) settle();
  };
  run(times(20'000));
  expect_no_growth([&] { run(times(50'000)); });
  must(pair.to_b.lookup("board", soon()));
  for (const std::uint64_t id : {std::uint64_t{0}, next / 2, next - 1})
    EXPECT_TRUE(fails_with(must(pair.to_a.expect(id, 1)).wait(soon()), Code::remote_failed))
        << "id " << id;
  must(pair.to_b.signal({next}, soon()));
  EXPECT_TRUE(succeeds(must(pair.to_a.expect(next, 1)).wait(soon())));
}

TEST_P(Steady, SegmentsAndGrants) {
  Couple pair = couple(config_for(GetParam()));
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Board board(pair, 10'000, 10'000);
      const Pair piece[] = {{0, 0, 10'000}};
      board.expect_moved(Direction::write, piece);
      must(board.remote.release(soon()));
      must(board.local.release(soon()));
    }
  };
  run(50);
  expect_no_growth([&] { run(200); });
  // A progress thread lets go of a transfer, and so of its segment, in its next step.
  for (const Engine* engine : {&pair.a, &pair.b}) {
    comes_to_be([&] { return engine->info().segments == 0; });
    EXPECT_EQ(engine->info().segments, 0U);
  }
}

TEST_P(Steady, DisconnectAndReconnect) {
  Engine a = must(Engine::open(config_for(GetParam())));
  Engine b = must(Engine::open(config_for(GetParam())));
  Segment local = must(a.add(Memory::own(10'000))), remote = must(b.add(Memory::own(10'000)));
  Grant grant = must(remote.grant({}, Rights::write));
  const Pair piece[] = {{0, 0, 10'000}};
  const auto run = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      auto [to_b, to_a] = acquaint(a, b);
      fill(bytes_of(local), i);
      must(must(a.write(local, must(a.import(grant.blob())), piece)).wait(soon()));
      ASSERT_TRUE(holds(bytes_of(remote), i));
      Expectation farewell = must(to_a.expect(1, 1));
      must(to_b.disconnect());
      ASSERT_TRUE(fails_with(farewell.wait(soon()), Code::peer_down));
      // This side's own end of the link.
      ASSERT_FALSE(must(to_b.expect(1, 1)).wait(soon()));
    }
  };
  run(10);
  expect_no_growth([&] { run(100); });
  EXPECT_EQ(a.peers().size(), 0U);
  EXPECT_EQ(b.peers().size(), 0U);
}

TEST_P(Steady, EnginesThatComeAndGo) {
  Engine b = must(Engine::open(config_for(GetParam())));
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      Engine a = must(Engine::open(config_for(GetParam())));
      auto [to_b, to_a] = acquaint(a, b);
      must(to_b.signal({1}, soon()));
      must(must(to_a.expect(1, 1)).wait(soon()));
      must(a.close(soon()));
      ASSERT_FALSE(must(to_a.expect(1, 1)).wait(soon()));
    }
  };
  run(20);  // addresses of the dead are kept for a while
  const Holdings before;
  run(30);
  // Memory is the provider's to keep: it grows by what an address costs.
  expect_no_leak(before);
}

constexpr std::size_t victim_bytes = 4 << 20;

/// Grants memory to the engine at an address, and waits to be killed. Arguments: provider, address.
WEFT_ROLE(victim) {
  Engine engine = must(Engine::open(config_for(arguments.at(0))));
  Segment board = must(engine.add(Memory::own(victim_bytes)));
  Grant grant = must(board.grant({}, Rights::write));
  must(engine.publish("board", grant));
  must(engine.connect(arguments.at(1), soon()));
  parent.hear(Deadline::in(300s));
  return 0;
}

class SteadyDeaths : public WithSmallPages<std::string> {};

TEST_P(SteadyDeaths, LeaveNothingBehind) {
  Engine engine = must(Engine::open(config_for(GetParam())));
  Segment local = must(engine.add(Memory::own(victim_bytes)));
  const auto run = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      Child victim("victim", {GetParam(), engine.address()});
      const Peer peer = must(engine.accept(soon()));
      const Remote there = must(peer.lookup("board", soon()));
      constexpr std::size_t count = 4, part = victim_bytes / count;
      std::vector<Transfer> transfers;
      for (std::size_t i = 0; i < count; ++i) {
        const Pair piece[] = {{i * part, i * part, part}};
        TransferOptions options;
        options.signal = Signal{1};
        transfers.push_back(must(engine.write(local, there, piece, options)));
      }
      victim.kill();
      for (Transfer& transfer : transfers) {
        std::ignore = transfer.wait(soon());
        ASSERT_NE(transfer.state(), State::active);
      }
      ASSERT_FALSE(must(peer.expect(1, 1)).wait(soon()));
    }
  };
  run(20);  // addresses of the dead are kept for a while
  const char* asked = std::getenv("WEFT_TEST_DEATHS");
  const int deaths = asked != nullptr ? std::stoi(asked) : 20;
  // Providers keep a little of each address; less than anything of ours would be.
  constexpr std::size_t each = 1024;
  expect_no_growth([&] { run(deaths); }, 4 * mebibyte + static_cast<std::size_t>(deaths) * each);
}

INSTANTIATE_TEST_SUITE_P(All, SteadyDeaths, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

INSTANTIATE_TEST_SUITE_P(All, Steady, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
