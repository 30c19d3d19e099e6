// Every pair of splits of every known model over up to 16 ranks: each byte of a destination comes
// once. Bytes are counted and not moved; random_test.cpp moves them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <weft/kv_models.hpp>

#include "providers/sanitizer.hpp"

namespace weft::kv {
namespace {

constexpr std::uint32_t most_ranks = 16, request_length = 20;

struct Split {
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
};

std::vector<Split> splits() {
  std::vector<Split> all;
  for (const std::uint32_t tp : {1u, 2u, 4u, 8u, 16u})
    for (const std::uint32_t pp : {1u, 2u, 3u, 4u, 8u, 16u})
      if (tp * pp <= most_ranks) all.push_back({tp, pp});
  return all;
}

/// The cache of one rank; what is left of the ranks serves other requests.
Cache cache_of(const Model& model, Split split, std::uint32_t stage, std::uint32_t rank) {
  const LayoutOptions options = {
      .blocks = 2,
      .state_blocks = 1,
      .parallel = {.tp = {split.tp, rank}, .dp = {most_ranks / (split.tp * split.pp), 0}},
      .layers = stage_layers(model.layers, {split.pp, stage}),
      .placement = Placement::fused};
  return Cache::contiguous(model.layout(options).value()).value();
}

/// Caches of one side, by stage and rank.
std::vector<std::vector<Cache>> caches_of(const Model& model, Split split) {
  std::vector<std::vector<Cache>> caches(split.pp);
  for (std::uint32_t stage = 0; stage < split.pp; ++stage)
    for (std::uint32_t rank = 0; rank < split.tp; ++rank)
      caches[stage].push_back(cache_of(model, split, stage, rank));
  return caches;
}

std::vector<Blocks> blocks_of(const Cache& cache) {
  static const std::uint32_t ids[] = {1, 0};
  std::vector<Blocks> blocks;
  for (const Group& group : cache.layout().groups())
    blocks.push_back({std::span(ids).subspan(group.tokens_per_block == 0 ? 1 : 0)});
  return blocks;
}

/// The bytes that all sources write into `dst`; 0 if one is written twice.
std::uint64_t covered(const std::vector<std::vector<Cache>>& src, const Cache& dst) {
  std::vector<Layout> stages;
  for (const auto& stage : src) stages.push_back(stage.front().layout());
  std::vector<Copy> copies;
  std::uint64_t bytes = 0;
  const auto ranks = source_ranks(stages, dst.layout(), TokenRange{0, request_length});
  for (const Rank& rank : ranks.value()) {
    const Cache& from = src[rank.pp][rank.tp];
    const Plan made = plan(from, blocks_of(from), dst, blocks_of(dst), {0, request_length}).value();
    if (made.bytes == 0) return 0;
    copies.insert(copies.end(), made.copies.begin(), made.copies.end());
    bytes += made.bytes;
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.dst_offset < b.dst_offset; });
  for (std::size_t i = 1; i < copies.size(); ++i)
    if (copies[i - 1].dst_offset + copies[i - 1].length > copies[i].dst_offset) return 0;
  return bytes;
}

class KvRanks : public testing::TestWithParam<std::size_t> {};

TEST_P(KvRanks, EachByteComesOnce) {
  const Model& model = models()[GetParam()];
  std::vector<std::vector<std::vector<Cache>>> sides;
  for (const Split split : splits()) sides.push_back(caches_of(model, split));
  for (const auto& src : sides)
    for (const auto& dst : sides)
      for (const auto& stage : dst)
        for (const std::size_t rank : {std::size_t{0}, stage.size() / 2, stage.size() - 1}) {
          const Layout& to = stage[rank].layout();
          ASSERT_EQ(covered(src, stage[rank]),
                    to.bytes_per_token() * request_length + to.state_bytes())
              << fmt::format("from {} stages of {} to rank {} of {} in {} stages", src.size(),
                             src.front().size(), rank, stage.size(), dst.size());
        }
}

// Under a sanitizer, which makes them ten times slower, every fifth model.
INSTANTIATE_TEST_SUITE_P(Models, KvRanks,
                         testing::Range<std::size_t>(0, models().size(),
                                                     providers::sanitized ? 5 : 1),
                         [](const auto& index) {
                           std::string name = models()[index.param].name;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace weft::kv
