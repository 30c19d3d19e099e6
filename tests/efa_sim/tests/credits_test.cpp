// How many operations an engine has in flight, by the depth of the NIC's send queue.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engines.hpp"
#include "support/efa_fabric.hpp"

namespace weft::test {
namespace {

/// Nothing of what it is given ends while this lives.
class Stall {
 public:
  explicit Stall(efa_sim::EfaControl& device) : device_(device) { device_.set("stall=1"); }
  ~Stall() { device_.set("stall=0"); }

 private:
  efa_sim::EfaControl& device_;
};

std::uint64_t in_flight(const Engine& engine) {
  return engine.info().rails.front().in_flight;
}

/// As deep as the device says that its queue is.
std::size_t depth() {
  return static_cast<std::size_t>(std::atoi(std::getenv("WEFT_TEST_SEND_QUEUE")));
}

// lib/core/transfer/placement.cpp: an eighth of the queue for each peer, and half of it for all.
TEST(Credits, FollowTheSendQueue) {
  constexpr std::uint64_t piece = 64, pieces = 4096;
  auto device = efa_sim::EfaControl::of_environment();
  Couple pair = couple(config_for({"efa", TransportKind::one_sided}, 1));
  const std::size_t window = pair.a.info().rails.front().capability.window;
  EXPECT_EQ(window, depth());
  Board board(pair, 2 * piece * pieces, 2 * piece * pieces);
  const Strided apart{{0, 0, piece}, pieces, 2 * piece, 2 * piece};
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, apart));
  ASSERT_TRUE(succeeds(must(pair.a.submit(prepared)).wait(soon())));
  const auto before = device.counters().full_queues;
  std::optional<Transfer> transfer;
  {
    const Stall stall(device);
    transfer = must(pair.a.submit(prepared));
    EXPECT_TRUE(comes_to_be([&] { return in_flight(pair.a) >= window / 8; }));
    std::this_thread::sleep_for(a_while);
    EXPECT_EQ(in_flight(pair.a), window / 8);
  }
  EXPECT_TRUE(succeeds(transfer->wait(soon())));
  EXPECT_EQ(device.counters().full_queues, before);
}

}  // namespace
}  // namespace weft::test
