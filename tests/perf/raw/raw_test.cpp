// What the plain loop is made of.
#include <gmock/gmock.h>

#include <limits>
#include <stdexcept>
#include <vector>

#include "raw/chunks.hpp"
#include "raw/process.hpp"
#include "raw/side.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;

TEST(PatternedMemory, EveryByteIsCompared) {
  constexpr std::size_t bytes = 4099;
  PatternedMemory memory(bytes);
  memory.fill(true);
  EXPECT_NO_THROW(memory.expect_pattern(0, bytes));
  for (const std::size_t at : {std::size_t{0}, std::size_t{7}, std::size_t{2048}, bytes - 1}) {
    memory.span()[at] ^= std::byte{1};
    EXPECT_THROW(memory.expect_pattern(0, bytes), std::runtime_error) << at;
    EXPECT_THROW(memory.expect_pattern(at, 1), std::runtime_error) << at;
    EXPECT_NO_THROW(memory.expect_pattern(0, at));
    EXPECT_NO_THROW(memory.expect_pattern(at + 1, bytes - at - 1));
    memory.span()[at] ^= std::byte{1};
  }
  EXPECT_THROW(memory.expect_pattern(0, bytes + 1), std::runtime_error);
  EXPECT_THROW(memory.expect_pattern(bytes + 1, 0), std::runtime_error);
  EXPECT_THROW(memory.expect_pattern(bytes, 1), std::runtime_error);
  memory.fill(false);
  EXPECT_THROW(memory.expect_pattern(0, 1), std::runtime_error);
}

std::vector<Chunks::Chunk> all_of(Chunks& chunks) {
  std::vector<Chunks::Chunk> all;
  while (auto chunk = chunks.take()) all.push_back(*chunk);
  return all;
}

/// Transfers of 10 bytes, in chunks of 4 where they are cut.
RawConfig of_tens(std::uint64_t window, std::uint64_t max_bytes) {
  RawConfig config;
  config.size = 10;
  config.chunk = 4;
  config.window = window;
  config.max_bytes = max_bytes;
  return config;
}

TEST(RawChunks, AreWholeTransfersUpToTheirBytes) {
  const RawConfig config = of_tens(2, 21);
  Chunks chunks(config, std::chrono::hours(1));
  const auto all = all_of(chunks);
  ASSERT_EQ(all.size(), 9U);
  EXPECT_EQ(chunks.transfers(), 3U);
  EXPECT_EQ(all[2].length, 2U);
  EXPECT_EQ(all[3].offset, 10U);
  EXPECT_EQ(all[8].offset, 8U) << "the third is where the first one was";
  EXPECT_TRUE(chunks.open(all[5]));
  EXPECT_FALSE(chunks.open(all[6])) << "the first one has not completed";
  chunks.counter(all[6]) += 3;
  EXPECT_TRUE(chunks.open(all[6]));
}

TEST(RawChunks, MessagesAreNotCut) {
  RawConfig config = of_tens(3, 40);
  config.operation = RawOperation::message;
  config.endpoints = 2;
  config.endpoint_window = 3;
  config.buffer_bytes = 10;
  EXPECT_EQ(positions_of(config), 6U) << "each endpoint has a buffer for each of its messages";
  Chunks chunks(config, std::chrono::hours(1));
  const auto all = all_of(chunks);
  ASSERT_EQ(all.size(), 4U);
  for (const auto& chunk : all) EXPECT_EQ(chunk.length, 10U);
}

TEST(RawConfig, CountsWhatIsNotedOfEachOperation) {
  RawConfig config;
  config.size = 1;
  config.window = 1000;
  config.endpoint_window = 500;
  config.endpoints = 2;
  EXPECT_EQ(memory_of(config), 1000 + 2 * 500 * 1024U);
  config.size = std::uint64_t{1} << 40;
  config.window = 1 << 28;
  EXPECT_EQ(memory_of(config), std::numeric_limits<std::uint64_t>::max());
}

TEST(RawLoop, RefusesWhatItCantDo) {
  RawConfig config;
  config.size = 0;
  EXPECT_THAT(RawProcess::start(config, RawProcess::Role::target).error().message(),
              HasSubstr("start at 1"));
  config.size = 1;
  config.endpoints = max_endpoints + 1;
  EXPECT_THAT(RawProcess::start(config, RawProcess::Role::target).error().message(),
              HasSubstr("endpoints go from 1 to 16"));
}

}  // namespace
}  // namespace weft::perf
