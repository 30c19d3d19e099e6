// The pattern against kv::plan: what one cache is filled with arrives in another of any layout, and
// no wrong byte stays unseen.
#include "demo/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "demo/cache.hpp"

namespace weft::tool {
namespace {

/// A cache in plain memory.
struct Memory {
  kv::Cache cache;
  PageMap map;
  std::vector<std::byte> bytes;

  explicit Memory(const kv::Layout& layout)
      : cache(kv::Cache::contiguous(layout).value()), map(cache), bytes(layout.bytes(), canary) {}
};

constexpr std::uint64_t tokens = 75;

kv::Layout layout_of(const char* model, kv::LayoutOptions options, kv::Share pp) {
  options.blocks = 12;
  options.state_blocks = 3;
  return CacheShape{kv::find_model(model).value(), options, pp}.layout().value();
}

/// Any blocks that have room, the last one partly filled; other ones on each side.
BlockTable table_of(const kv::Layout& layout, std::uint64_t seed) {
  std::vector<std::uint32_t> blocks;
  for (const kv::Group& group : layout.groups()) blocks.push_back(group.blocks);
  return BlockAllocator(std::move(blocks), seed)
      .allocate(blocks_needed(layout, tokens), Deadline::now())
      .value();
}

constexpr kv::LayerRange all_layers{0, 1000};

struct Case {
  const char* name;
  const char* model;
  kv::LayoutOptions src, dst;
  kv::Share src_pp = {}, dst_pp = {};
};

std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.name;
}

const Case cases[] = {
    {"alike", "Llama-3.1-8B", {.tokens_per_block = 16}, {.tokens_per_block = 16}},
    {"other_block_size", "Llama-3.1-8B", {.tokens_per_block = 16}, {.tokens_per_block = 64}},
    {"other_order",
     "Qwen3-8B",
     {.tokens_per_block = 16, .order = kv::Order::block_major},
     {.tokens_per_block = 16, .placement = kv::Placement::fused}},
    {"fp8_heads_first",
     "Llama-3.1-8B",
     {.dtype = kv::DType::fp8, .tokens_per_block = 16, .head_order = kv::HeadOrder::hnd},
     {.dtype = kv::DType::fp8, .tokens_per_block = 32}},
    {"latent",
     "DeepSeek-V3",
     {.tokens_per_block = 16},
     {.tokens_per_block = 64, .order = kv::Order::block_major}},
    {"two_groups",
     "GPT-OSS-20B",
     {.tokens_per_block = 16},
     {.tokens_per_block = 8, .order = kv::Order::block_major}},
    {"padded",
     "GPT-OSS-20B",
     {.tokens_per_block = 16, .block_padding = 100, .block_alignment = 64},
     {.tokens_per_block = 16, .order = kv::Order::block_major, .block_padding = 24}},
    {"some_heads",
     "Llama-3.1-8B",
     {.tokens_per_block = 16, .parallel = {.tp = {4, 1}}},
     {.tokens_per_block = 16, .parallel = {.tp = {2, 0}}}},
    // Of some stages, which are smaller.
    {"hybrid_to_two_ranks",
     "Nemotron-3-Nano",
     {.tokens_per_block = 16},
     {.tokens_per_block = 32, .parallel = {.tp = {2, 1}}, .placement = kv::Placement::fused},
     {8, 2},
     {8, 2}},
    {"hybrid_from_many_ranks",
     "Nemotron-3-Nano",
     {.tokens_per_block = 16, .parallel = {.tp = {16, 9}}, .placement = kv::Placement::fused},
     {.tokens_per_block = 16, .parallel = {.tp = {2, 1}}, .order = kv::Order::block_major},
     {2, 0},
     {8, 2}},
    {"linear_attention",
     "Qwen3.5-35B-A3B",
     {.tokens_per_block = 16, .parallel = {.tp = {4, 3}}},
     {.tokens_per_block = 16, .parallel = {.tp = {8, 7}}},
     {8, 2},
     {8, 2}},
    {"indexer_of_a_stage",
     "DeepSeek-V3.2",
     {.tokens_per_block = 64},
     {.tokens_per_block = 32, .order = kv::Order::block_major},
     {16, 5},
     {8, 2}},
    {"stages_that_overlap",
     "Gemma-3-27B",
     {.tokens_per_block = 16},
     {.tokens_per_block = 16},
     {13, 6},
     {8, 3}},
};

class Pattern : public testing::TestWithParam<Case> {
 protected:
  Memory src{layout_of(GetParam().model, GetParam().src, GetParam().src_pp)};
  Memory dst{layout_of(GetParam().model, GetParam().dst, GetParam().dst_pp)};
  BlockTable from = table_of(src.cache.layout(), 3);
  BlockTable to = table_of(dst.cache.layout(), 5);
  Expected sent{{42, 7}, tokens, shared_in(src.cache.layout())};
  Expected what{{42, 7}, tokens, shared_in(dst.cache.layout())};

  Shared shared_in(const kv::Layout& own) {
    return shared_by(src.cache.layout(), dst.cache.layout(), own);
  }

  void hand_over() {
    fill(src.bytes, src.map, from, sent, all_layers);
    const auto plan =
        kv::plan(src.cache, blocks_of(from), dst.cache, blocks_of(to), {0, tokens}).value();
    for (const kv::Copy& copy : plan.copies)
      std::memcpy(dst.bytes.data() + copy.dst_offset, src.bytes.data() + copy.src_offset,
                  copy.length);
    moved = plan.bytes;
  }
  Findings look() { return verify(dst.bytes, dst.map, to, what, all_layers); }

  std::uint64_t moved = 0;
};

TEST_P(Pattern, ArrivesByThePlan) {
  hand_over();
  EXPECT_EQ(moved, bytes_of(dst.cache.layout(), what.shared, tokens));
  const Findings findings = look();
  EXPECT_TRUE(findings.right()) << findings.first;
  EXPECT_GT(findings.checked, moved);  // The last block has room for more tokens.
}

TEST_P(Pattern, LeavesNothingBehindOnceCleared) {
  hand_over();
  EXPECT_FALSE(verify_canary(dst.bytes, 0).right());
  clear(dst.bytes, dst.map, to, all_layers);
  const Findings findings = verify_canary(dst.bytes, 0);
  EXPECT_TRUE(findings.right()) << findings.first;
}

TEST_P(Pattern, ShowsWhatNeverCame) {
  fill(src.bytes, src.map, from, sent, all_layers);
  const Findings findings = look();
  EXPECT_GT(findings.wrong, 0U);
  EXPECT_NE(findings.first.find("request 7, layer "), std::string::npos) << findings.first;
}

TEST_P(Pattern, ShowsWhatAnotherRequestLeft) {
  hand_over();
  what.key.request = 8;
  EXPECT_GT(look().wrong, 0U);
}

TEST_P(Pattern, ShowsEachWrongByte) {
  hand_over();
  // Every bit of the copy that is wrong must be found, wherever in a request's blocks it lies.
  const auto plan =
      kv::plan(dst.cache, blocks_of(to), dst.cache, blocks_of(to), {0, tokens}).value();
  for (std::size_t i = 0; i < plan.copies.size(); i += 1 + plan.copies.size() / 50) {
    const kv::Copy& copy = plan.copies[i];
    std::byte& wrong = dst.bytes[copy.dst_offset + i * 31 % copy.length];
    wrong ^= std::byte{0x10};
    const Findings findings = look();
    EXPECT_EQ(findings.wrong, 1U);
    EXPECT_FALSE(findings.first.empty());
    wrong ^= std::byte{0x10};
  }
  EXPECT_TRUE(look().right());
}

INSTANTIATE_TEST_SUITE_P(Layouts, Pattern, testing::ValuesIn(cases),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Canary, NamesTheFirstByteThatIsNoCanary) {
  std::vector<std::byte> memory(1001, canary);
  EXPECT_TRUE(verify_canary(memory, 0).right());
  memory[1000] = std::byte{1};
  const Findings findings = verify_canary(memory, 500);
  EXPECT_EQ(findings.wrong, 1U);
  EXPECT_NE(findings.first.find("offset 1500"), std::string::npos) << findings.first;
}

}  // namespace
}  // namespace weft::tool
