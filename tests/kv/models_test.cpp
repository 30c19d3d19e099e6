#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/kv_models.hpp>

namespace weft::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(KvModels, BytesPerToken) {
  const struct {
    const char* name;
    std::uint64_t bytes;
  } figures[] = {
      {"Llama-3.1-8B", 128 * 1024},  {"Llama-3.1-70B", 320 * 1024}, {"Llama-3.1-405B", 504 * 1024},
      {"Qwen3-8B", 144 * 1024},      {"Qwen3-32B", 256 * 1024},     {"Qwen3-235B-A22B", 188 * 1024},
      {"DeepSeek-V3", 61 * 576 * 2}, {"DeepSeek-R1", 70272},        {"GPT-OSS-20B", 48 * 1024},
      {"GPT-OSS-120B", 72 * 1024},
  };
  EXPECT_EQ(models().size(), std::size(figures));
  for (const auto& figure : figures) {
    const auto model = find_model(figure.name);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->bytes_per_token(DType::bf16), figure.bytes) << figure.name;
    EXPECT_EQ(model->bytes_per_token(DType::fp8), figure.bytes / 2) << figure.name;
  }
}

TEST(KvModels, NamesIgnoreCaseAndMayBeIds) {
  EXPECT_EQ(find_model("llama-3.1-8b")->name, "Llama-3.1-8B");
  EXPECT_EQ(find_model("OPENAI/GPT-OSS-20B")->name, "GPT-OSS-20B");
}

TEST(KvModels, UnknownNamesListTheKnown) {
  const auto model = find_model("Llama-3.1-8");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code(), Code::not_found);
  for (const Model& known : models()) {
    EXPECT_THAT(model.error().message(), HasSubstr(std::string(known.name)));
  }
}

TEST(KvModels, LayoutsOfAllModels) {
  for (const Model& model : models()) {
    for (const DType dtype : {DType::bf16, DType::fp8}) {
      const auto layout = model.layout({.dtype = dtype, .tokens_per_block = 64, .blocks = 5});
      ASSERT_TRUE(layout) << layout.error().message();
      EXPECT_EQ(layout->bytes_per_token(), model.bytes_per_token(dtype)) << model.name;
      EXPECT_EQ(layout->bytes(), layout->bytes_per_token() * 64 * 5) << model.name;
    }
    for (const std::uint32_t size : {2u, 4u, 8u}) {
      EXPECT_TRUE(model.layout({.blocks = 1, .tp = {size, size - 1}})) << model.name;
    }
  }
}

TEST(KvModels, OptionsReachTheLayout) {
  const auto layout = find_model("Qwen3-235B-A22B")
                          ->layout({.dtype = DType::fp8,
                                    .tokens_per_block = 32,
                                    .blocks = 7,
                                    .tp = {8, 3},
                                    .parts = Parts::fused,
                                    .order = Order::layer_major,
                                    .head_order = HeadOrder::hnd,
                                    .regions = Regions::per_layer,
                                    .block_padding = 5,
                                    .block_alignment = 4096});
  ASSERT_TRUE(layout) << layout.error().message();
  const Group& group = layout->groups()[0];
  EXPECT_EQ(group.element_size, 1u);
  EXPECT_EQ(group.head_order, HeadOrder::hnd);
  EXPECT_EQ(layout->heads(0).first, 1u);
  ASSERT_EQ(layout->region_bytes().size(), 94u);
  EXPECT_EQ(layout->region_bytes()[0], 7u * (2 * 32 * 128 + 4096));
}

TEST(KvModels, LatentsAreWholeOnEveryRank) {
  const auto model = find_model("DeepSeek-V3").value();
  const auto layout = model.layout({.blocks = 1, .tp = {8, 5}, .parts = Parts::split}).value();
  EXPECT_EQ(layout.groups()[0].parts, Parts::latent);
  EXPECT_EQ(layout.bytes_per_token(), 70272u);
}

TEST(KvModels, AlternatingLayersMakeTwoGroups) {
  const auto layout = find_model("GPT-OSS-20B")->layout({.blocks = 1}).value();
  ASSERT_EQ(layout.groups().size(), 2u);
  const Group& windowed = layout.groups()[0];
  const Group& full = layout.groups()[1];
  EXPECT_EQ(windowed.window, 128u);
  EXPECT_EQ(full.window, 0u);
  EXPECT_THAT(windowed.layers, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22));
  EXPECT_THAT(full.layers, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23));
}

TEST(KvModels, BadOptionsAreRefused) {
  const auto model = find_model("Llama-3.1-8B").value();
  EXPECT_THAT(model.layout({}).error().message(), HasSubstr("blocks = 0"));
  EXPECT_FALSE(model.layout({.blocks = 1, .tp = {3, 0}}));
}

// The example of kv.hpp, at its numbers.
TEST(KvModels, PrefillToDecode) {
  const auto model = find_model("Llama-3.1-8B").value();
  const auto prefill = model.layout({.blocks = 4096, .tp = {.size = 2, .rank = 0}}).value();
  const auto decode = model.layout({.tokens_per_block = 64, .blocks = 1024}).value();
  const auto src = Cache::contiguous(prefill).value();
  const auto dst = Cache::contiguous(decode).value();
  const std::vector<std::uint32_t> from = {7, 8, 9, 12, 40}, to = {3, 5};
  const Blocks blocks[] = {{.src = from, .dst = to, .tokens = 75}};
  std::uint64_t bytes = 0;
  for (std::uint32_t layer = 0; layer < model.layers; layer += 8) {
    const auto made = plan(src, dst, blocks, LayerRange{layer, 8});
    ASSERT_TRUE(made) << made.error().message();
    bytes += made->bytes;
  }
  EXPECT_EQ(bytes, 75 * prefill.bytes_per_token());
}

}  // namespace
}  // namespace weft::kv
