// Engines that know each other and have nothing to do: their threads sleep.
#include <atomic>
#include <thread>

#include "engines.hpp"
#include "forwarding.hpp"

namespace weft::test {
namespace {

std::atomic<std::uint64_t> looks{0};

class CountingEndpoint final : public ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  std::size_t poll() override {
    ++looks;
    return inner().poll();
  }
};

/// Whether the rails of all engines here come to rest: where there is no descriptor to sleep on
/// each of the four is looked at a thousand times a second, and by a thread that does not sleep far
/// more often.
bool come_to_rest() {
  constexpr auto window = 200ms;
  constexpr std::uint64_t most = 2000;
  const Deadline deadline = Deadline::in(20s);
  while (!deadline.passed()) {
    const std::uint64_t before = looks;
    std::this_thread::sleep_for(window);
    if (looks - before < most) return true;
  }
  return false;
}

class Idle : public testing::TestWithParam<std::string> {};

TEST_P(Idle, EnginesSleepWhateverTheyHaveDoneBefore) {
  constexpr std::size_t bytes = 65536;
  Couple pair = wrapped<CountingEndpoint>([] { return couple(config_for(GetParam())); });
  Board board(pair, bytes, bytes);
  ASSERT_TRUE(come_to_rest()) << "before anything has moved";
  const Pair all[] = {{0, 0, bytes}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    board.repaint();
    board.expect_moved(direction, all);
    EXPECT_TRUE(come_to_rest()) << "after a transfer";
  }
  const std::vector<std::byte> word(64, std::byte{7});
  for (int i = 0; i < 3; ++i) {
    must(pair.to_b.send(5, word, soon()));
    EXPECT_EQ(must(pair.to_a.recv(5, ~std::uint64_t{0}, soon())).bytes, word);
    must(pair.to_a.send(6, word, soon()));
    EXPECT_EQ(must(pair.to_b.recv(6, ~std::uint64_t{0}, soon())).bytes, word);
    EXPECT_TRUE(come_to_rest()) << "after messages";
  }
}

TEST_P(Idle, WhatComesWhileTheySleepWakesThem) {
  constexpr std::size_t bytes = 4096;
  Couple pair = wrapped<CountingEndpoint>([] { return couple(config_for(GetParam())); });
  Board board(pair, bytes, bytes);
  const Pair all[] = {{0, 0, bytes}};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(come_to_rest());
    board.repaint();
    board.expect_moved(i % 2 == 0 ? Direction::write : Direction::read, all,
                       {.deadline = soon(), .signal = Signal{.id = 3}});
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, Idle, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
