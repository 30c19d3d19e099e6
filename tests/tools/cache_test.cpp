// That a cache finds what a peer has written into its memory, wherever that is: over the CUDA
// driver that the loader finds.
#include "demo/cache.hpp"

#include <gmock/gmock.h>

namespace weft::tool {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t tokens = 40;

Deadline soon() {
  return Deadline::in(std::chrono::seconds(30));
}

Engine open_engine(const std::string& listen) {
  Config config;
  config.providers = {"tcp"};
  config.listen = listen;
  return Engine::open(config).value();
}

CacheShape shape() {
  CacheShape shape{kv::find_model("GPT-OSS-20B").value(), {}};
  shape.options.blocks = 8;
  return shape;
}

/// A cache, and a peer that may write anywhere in it.
class Cache : public testing::TestWithParam<const char*> {
 protected:
  Cache()
      : cache_(PagedCache::create(owner_, shape(), GetParam(), 1, {}).value()),
        grant_(cache_.segment().grant({}, Rights::read_write).value()),
        page_(peer_.add(Memory::own(4096)).value()),
        met_(peer_.connect(owner_.address(), soon()).value()),
        there_(peer_.import(grant_.blob()).value()) {}

  /// Turns all bits of a byte over.
  void damage(std::uint64_t offset) {
    const Pair byte{0, offset, 1};
    ASSERT_TRUE(peer_.read(page_, there_, {&byte, 1}).value().wait(soon()));
    page_.data()[0] = ~page_.data()[0];
    ASSERT_TRUE(peer_.write(page_, there_, {&byte, 1}).value().wait(soon()));
  }

  /// The first byte of a block, in the first layer.
  std::uint64_t start_of(std::uint32_t block) {
    BlockTable table(cache_.layout().groups().size());
    table.front() = {block};
    return cache_.ranges(table, {0, 1}).value().front().offset;
  }

  Engine owner_ = open_engine("127.0.0.1:0"), peer_ = open_engine("");
  PagedCache cache_;
  Grant grant_;
  Segment page_;
  Peer met_;
  Remote there_;
  Expected what_{{7, 3}, tokens, shared_by(cache_.layout(), cache_.layout(), cache_.layout())};
};

TEST_P(Cache, WhatIsFilledIsThere) {
  const BlockTable blocks = cache_.blocks().allocate({3, 3}, soon()).value();
  ASSERT_TRUE(cache_.fill(blocks, what_, {}));
  const Findings found = cache_.verify(blocks, what_, {}).value();
  EXPECT_TRUE(found.right()) << found.first;
  EXPECT_EQ(found.checked, 3 * cache_.layout().bytes() / 8);
  EXPECT_FALSE(cache_.verify_canary({}).value().right());
  ASSERT_TRUE(cache_.clear(blocks, {}));
  EXPECT_TRUE(cache_.verify_canary({}).value().right());
}

TEST_P(Cache, AWrongByteIsFoundInAnyBlock) {
  const BlockTable blocks = cache_.blocks().allocate({3, 3}, soon()).value();
  ASSERT_TRUE(cache_.fill(blocks, what_, {}));
  for (const std::uint32_t block : blocks.front()) {
    damage(start_of(block));
    const Findings found = cache_.verify(blocks, what_, {}).value();
    EXPECT_EQ(found.wrong, 1u);
    EXPECT_THAT(found.first, HasSubstr("request 3, layer 0, keys"));
    damage(start_of(block));
    EXPECT_TRUE(cache_.verify(blocks, what_, {}).value().right());
  }
}

TEST_P(Cache, AWriteBetweenTheRequestsBlocksIsFound) {
  const BlockTable blocks = cache_.blocks().allocate({3, 3}, soon()).value();
  const std::uint64_t elsewhere = start_of(cache_.blocks().free_blocks().front().front());
  damage(elsewhere);
  Expected nothing = what_;
  nothing.tokens = 0;
  EXPECT_TRUE(cache_.verify(blocks, nothing, {}).value().right());
  const Findings found = cache_.verify_canary({}).value();
  EXPECT_EQ(found.wrong, 1u);
  EXPECT_THAT(found.first, HasSubstr("which nobody was granted"));
}

INSTANTIATE_TEST_SUITE_P(Memory, Cache, testing::Values("host", "shared", "gpu:0", "gpu:1"),
                         [](const auto& memory) {
                           std::string name = memory.param;
                           std::erase(name, ':');
                           return name;
                         });

}  // namespace
}  // namespace weft::tool
