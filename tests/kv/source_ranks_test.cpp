#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/kv.hpp>

namespace weft::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Layout stage(std::vector<std::uint32_t> layers, Parallel parallel = {},
             std::vector<Field> fields = keys_values(8, 4)) {
  Group group;
  group.layers = std::move(layers);
  group.blocks = 8;
  group.tokens_per_block = 16;
  group.fields = std::move(fields);
  return Layout::create({group}, parallel).value();
}

TEST(KvSourceRanks, StagesOfAPipeline) {
  const Layout stages[] = {stage({0, 1, 2}, {.tp = {2, 0}}), stage({3}), stage({4, 5})};
  EXPECT_THAT(source_ranks(stages, stage({0, 1, 2, 3, 4, 5})).value(),
              ElementsAre(Rank{0, 0}, Rank{0, 1}, Rank{1, 0}, Rank{2, 0}));
  EXPECT_THAT(source_ranks(stages, stage({2, 3}, {.tp = {2, 1}})).value(),
              ElementsAre(Rank{0, 1}, Rank{1, 0}));
  EXPECT_THAT(source_ranks(stages, stage({2, 3, 4}), {}, LayerRange{3, 1}).value(),
              ElementsAre(Rank{1, 0}));
}

TEST(KvSourceRanks, OneLayerComesFromOneStage) {
  const Layout stages[] = {stage({0, 1}), stage({1, 2})};
  EXPECT_THAT(source_ranks(stages, stage({0})).error().message(),
              HasSubstr("Stages 0 and 1 both hold the field \"keys\" of layer 1"));
}

TEST(KvSourceRanks, NameTheReplicaThatHoldsTheRequest) {
  const Layout stages[] = {stage({0}, {.tp = {4, 0}, .dp = {2, 1}})};
  EXPECT_THAT(source_ranks(stages, stage({0}, {.tp = {4, 3}})).value(), ElementsAre(Rank{0, 3, 1}));
}

// Replicas share the work: each source rank serves the destination rank of its own number.
TEST(KvSourceRanks, ReplicasTakeTurns) {
  for (const std::uint32_t dcp : {1u, 2u, 4u, 16u}) {
    const Layout src[] = {stage({0}, {.tp = {16, 0}, .dcp = {dcp, 1}}, latent(8))};
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      const Layout dst = stage({0}, {.tp = {16, rank}, .dcp = {dcp, 1}}, latent(8));
      EXPECT_THAT(source_ranks(src, dst).value(), ElementsAre(Rank{0, rank}));
    }
  }
}

TEST(KvSourceRanks, TokensThatAreInterleavedComeFromAllThatShareThem) {
  const Layout src[] = {stage({0}, {.tp = {8, 0}, .dcp = {4, 16}}, latent(8))};
  const Layout dst = stage({0}, {}, latent(8));
  EXPECT_THAT(source_ranks(src, dst).value(),
              ElementsAre(Rank{0, 0}, Rank{0, 1}, Rank{0, 2}, Rank{0, 3}));
  EXPECT_THAT(source_ranks(src, dst, TokenRange{16, 17}).value(),
              ElementsAre(Rank{0, 1}, Rank{0, 2}));
}

}  // namespace
}  // namespace weft::kv
