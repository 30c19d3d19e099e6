// How often an engine rings the doorbell for what it posts.
#include <gtest/gtest.h>

#include "engines.hpp"
#include "support/efa_fabric.hpp"

namespace weft::test {
namespace {

class Doorbells : public testing::TestWithParam<Direction> {
 protected:
  static constexpr std::size_t chunks = 128, chunk = 64 << 10;

  static Config config() {
    Config config = config_for({"efa", TransportKind::one_sided}, 1);
    config.chunk_bytes = chunk;
    return config;
  }
  efa_sim::EfaControl device_ = efa_sim::EfaControl::of_environment();
};

// At first a rail posts two batches of 8.
TEST_P(Doorbells, RingOnceForABatch) {
  Couple pair = couple(config());
  const Capability record = pair.a.info().rails.front().capability;
  if (record.write == Origin::emulated || record.read == Origin::emulated)
    GTEST_SKIP() << "libfabric makes packets of them, and rings as it likes";
  Board board(pair, chunks * chunk, chunks * chunk);
  const Pair all[] = {{0, 0, chunks * chunk}};
  const auto before = device_.counters();
  board.expect_moved(GetParam(), all);
  const auto after = device_.counters();
  const std::uint64_t posts = after.operations - before.operations;
  const std::uint64_t rings = after.doorbells - before.doorbells;
  RecordProperty("posts", std::to_string(posts));
  RecordProperty("rings", std::to_string(rings));
  ASSERT_GE(posts, chunks);
  if (record.shared_doorbell) {
    EXPECT_LE(rings + 14, posts);
    EXPECT_GT(rings, 0U);
  } else {
    EXPECT_EQ(rings, posts);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Doorbells, testing::Values(Direction::write, Direction::read));

}  // namespace
}  // namespace weft::test
