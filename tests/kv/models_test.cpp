#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/kv_models.hpp>

#include "kv/known_configs.hpp"

namespace weft::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Figure {
  const char* name;
  std::uint64_t per_token = 0;  ///< In bf16, windows not cut.
  std::uint64_t states = 0;     ///< Of one request.
};

constexpr std::uint64_t kib = 1024;

// Kept apart from the table of configurations: worked out by hand from layers, heads and sizes.
// Numbers with a name behind them were published by others.
const Figure figures[] = {
    {"Llama-3.1-8B", 128 * kib},
    {"Llama-3.1-70B", 320 * kib},
    {"Llama-3.1-405B", 504 * kib},
    {"Llama-3.3-70B", 320 * kib},
    {"Llama-4-Scout", 192 * kib},
    {"Llama-4-Maverick", 192 * kib},
    {"Qwen3-8B", 144 * kib},
    {"Qwen3-32B", 256 * kib},
    {"Qwen3-30B-A3B", 96 * kib},
    {"Qwen3-235B-A22B", 188 * kib},
    {"Qwen3-Coder-480B-A35B", 248 * kib},
    {"Qwen3-Next-80B-A3B", 12 * 2 * 2 * 256 * 2,
     36 * ((2 * 16 * 128 + 32 * 128) * 3 * 2 + 32 * 128 * 128 * 2)},
    {"Qwen3.5-27B", 16 * 2 * 4 * 256 * 2,
     48 * ((2 * 16 * 128 + 48 * 128) * 3 * 2 + 48 * 128 * 128 * 4)},
    {"Qwen3.5-35B-A3B", 10 * 2 * 2 * 256 * 2,
     30 * ((2 * 16 * 128 + 32 * 128) * 3 * 2 + 32 * 128 * 128 * 4)},
    {"Qwen3.5-122B-A10B", 12 * 2 * 2 * 256 * 2,
     36 * ((2 * 16 * 128 + 64 * 128) * 3 * 2 + 64 * 128 * 128 * 4)},
    {"Qwen3.5-397B-A17B", 15 * 2 * 2 * 256 * 2,
     45 * ((2 * 16 * 128 + 64 * 128) * 3 * 2 + 64 * 128 * 128 * 4)},
    {"DeepSeek-V3", 61 * 576 * 2},  // 70 KB in DeepSeek's "Insights into DeepSeek-V3"
    {"DeepSeek-R1", 70272},
    {"DeepSeek-V3.2", 61 * (576 * 2 + 132)},  // vLLM's indexer page: 128 fp8 and an fp32 scale
    {"Kimi-K2", 61 * 576 * 2},
    {"Kimi-K2.5", 61 * 576 * 2},
    {"GLM-4.5-Air", 184 * kib},
    {"GLM-4.7", 368 * kib},
    {"GLM-5", 78 * (576 * 2 + 132)},
    {"GLM-5.1", 78 * (576 * 2 + 132)},
    {"MiniMax-M2.5", 248 * kib},
    {"MiniMax-M2.7", 248 * kib},
    {"Mixtral-8x7B", 128 * kib},
    {"Mixtral-8x22B", 224 * kib},
    {"Mistral-7B-Instruct-v0.2", 128 * kib},
    {"Mistral-Small-3.2-24B", 160 * kib},
    {"Devstral-Small-2-24B", 160 * kib},
    {"Gemma-3-27B", 62 * 2 * 16 * 128 * 2},
    {"MiMo-V2-Flash", 39 * 8 * (192 + 128) * 2 + 9 * 4 * (192 + 128) * 2},
    {"GPT-OSS-20B", 48 * kib},
    {"GPT-OSS-120B", 72 * kib},
    {"Nemotron-H-56B", 10 * 2 * 8 * 128 * 2,
     54 * ((256 * 64 + 2 * 8 * 256) * 3 * 2 + 256 * 64 * 256 * 2)},
    {"Nemotron-3-Nano", 6 * 2 * 2 * 128 * 2,
     23 * ((64 * 64 + 2 * 8 * 128) * 3 * 2 + 64 * 64 * 128 * 4)},
    {"Nemotron-3-Super", 8 * 2 * 2 * 128 * 2,
     40 * ((128 * 64 + 2 * 8 * 128) * 3 * 2 + 128 * 64 * 128 * 4)},
    {"Granite-3.1-2B", 80 * kib},
    {"Granite-3.1-8B", 160 * kib},
    {"Granite-4.0-H-Tiny", 4 * 2 * 4 * 128 * 2,
     36 * ((48 * 64 + 2 * 128) * 3 * 2 + 48 * 64 * 128 * 2)},
    {"Jamba-v0.1", 16 * kib,  // AI21: 4 GB for 256 K tokens
     28 * (8192 * 3 * 2 + 8192 * 16 * 2)},
};

TEST(KvModels, BytesPerToken) {
  EXPECT_EQ(models().size(), std::size(figures));
  EXPECT_EQ(known_configs().size(), std::size(figures));
  for (const Figure& figure : figures) {
    const auto model = find_model(figure.name);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->bytes_per_token(DType::bf16), figure.per_token) << figure.name;
    EXPECT_EQ(model->state_bytes(), figure.states) << figure.name;
  }
  // Published: DeepSeek-V3 in fp8 has 35,136 bytes for each token, Gemma 3's windows 416 MiB.
  EXPECT_EQ(find_model("DeepSeek-V3")->bytes_per_token(DType::fp8), 35136u);
  EXPECT_EQ(find_model("Gemma-3-27B")->request_bytes(32768, DType::bf16),
            32768u * 80 * kib + 436207616);
  EXPECT_EQ(find_model("GPT-OSS-20B")->request_bytes(4096, DType::bf16),
            4096u * 24 * kib + 3145728);
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
      const auto layout =
          model.layout({.dtype = dtype, .tokens_per_block = 64, .blocks = 5, .state_blocks = 2});
      ASSERT_TRUE(layout) << layout.error().message();
      EXPECT_EQ(layout->bytes_per_token(), model.bytes_per_token(dtype)) << model.name;
      EXPECT_EQ(layout->state_bytes(), model.state_bytes()) << model.name;
      EXPECT_EQ(layout->bytes(), layout->bytes_per_token() * 64 * 5 + layout->state_bytes() * 2)
          << model.name;
    }
    for (const std::uint32_t size : {2u, 4u, 8u, 16u}) {
      EXPECT_TRUE(model.layout({.blocks = 1, .parallel = {.tp = {size, size - 1}}})) << model.name;
    }
  }
}

TEST(KvModels, OptionsReachTheLayout) {
  const auto layout = find_model("Qwen3-235B-A22B")
                          ->layout({.dtype = DType::fp8,
                                    .tokens_per_block = 32,
                                    .blocks = 7,
                                    .parallel = {.tp = {8, 3}},
                                    .layers = LayerRange{90, 4},
                                    .placement = Placement::fused,
                                    .order = Order::layer_major,
                                    .head_order = HeadOrder::hnd,
                                    .regions = Regions::per_layer,
                                    .block_padding = 5,
                                    .block_alignment = 4096});
  ASSERT_TRUE(layout) << layout.error().message();
  const Group& group = layout->groups()[0];
  EXPECT_EQ(group.fields[0].vector[0].type, DType::fp8);
  EXPECT_EQ(group.head_order, HeadOrder::hnd);
  EXPECT_THAT(group.layers, ElementsAre(90, 91, 92, 93));
  EXPECT_EQ(layout->heads(0, 0).first, 1u);
  ASSERT_EQ(layout->region_bytes().size(), 4u);
  EXPECT_EQ(layout->region_bytes()[0], 7u * (2 * 32 * 128 + 4096));
}

TEST(KvModels, LatentsAreWholeOnEveryRank) {
  const auto model = find_model("DeepSeek-V3").value();
  const auto layout = model.layout({.blocks = 1, .parallel = {.tp = {8, 5}}}).value();
  EXPECT_EQ(layout.bytes_per_token(), 70272u);
}

TEST(KvModels, WindowsAreGroupsOfTheirOwn) {
  const auto layout = find_model("GPT-OSS-20B")->layout({.blocks = 1}).value();
  ASSERT_EQ(layout.groups().size(), 2u);
  const Group& windowed = layout.groups()[0];
  const Group& full = layout.groups()[1];
  EXPECT_EQ(windowed.window, 128u);
  EXPECT_EQ(full.window, 0u);
  EXPECT_THAT(windowed.layers, ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22));
  EXPECT_THAT(full.layers, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23));
}

TEST(KvModels, StatesAreGroupsOfTheirOwn) {
  const auto layout =
      find_model("Nemotron-3-Nano")->layout({.blocks = 8, .state_blocks = 2}).value();
  ASSERT_EQ(layout.groups().size(), 2u);
  EXPECT_THAT(layout.groups()[0].layers, ElementsAre(5, 12, 19, 26, 33, 42));
  EXPECT_EQ(layout.groups()[1].layers.size(), 23u);
  EXPECT_EQ(layout.groups()[1].tokens_per_block, 0u);
  EXPECT_EQ(layout.groups()[1].blocks, 2u);
}

// As the tensors of one layer are printed: [2][blocks][tokens][heads][size], and so on.
TEST(KvModels, LayoutsOfServers) {
  const auto model = find_model("Llama-3.1-8B").value();
  const auto regions = [&](const char* server) {
    const auto layout = model.layout(with_server(server, {.blocks = 3}).value());
    return layout.value().region_bytes().size();
  };
  EXPECT_EQ(server_layouts().size(), 6u);
  EXPECT_EQ(regions("vllm-flash-attn"), 32u);
  EXPECT_EQ(regions("vllm-flashinfer-hnd"), 32u);
  EXPECT_EQ(regions("sglang"), 64u);
  EXPECT_EQ(regions("tensorrt-llm"), 1u);
  for (const ServerLayout& server : server_layouts())
    for (const Model& each : models())
      EXPECT_TRUE(each.layout(with_server(server.name, {.blocks = 3}).value())) << each.name;
  EXPECT_THAT(with_server("x").error().message(), HasSubstr("there are vllm-flash-attn, "));
}

TEST(KvModels, BadOptionsAreRefused) {
  const auto model = find_model("Llama-3.1-8B").value();
  EXPECT_THAT(model.layout({}).error().message(), HasSubstr("blocks = 0"));
  EXPECT_THAT(model.layout({.tokens_per_block = 0, .blocks = 1}).error().message(),
              HasSubstr("tokens_per_block = 0"));
  EXPECT_FALSE(model.layout({.blocks = 1, .parallel = {.tp = {3, 0}}}));
  EXPECT_THAT(model.layout({.blocks = 1, .layers = LayerRange{32, 1}}).error().message(),
              HasSubstr("keeps nothing in 1 layers from layer 32 on; it has 32 layers"));
}

// The example of kv.hpp, at its numbers.
TEST(KvModels, PrefillToDecode) {
  const auto model = find_model("Llama-3.1-8B").value();
  const auto prefill = model.layout({.blocks = 4096, .parallel = {.tp = {2, 0}}}).value();
  const auto decode = model.layout({.tokens_per_block = 64, .blocks = 1024}).value();
  const auto src = Cache::contiguous(prefill).value();
  const auto dst = Cache::contiguous(decode).value();
  const std::vector<std::uint32_t> from = {7, 8, 9, 12, 40}, to = {3, 5};
  const Blocks here[] = {{.ids = from}}, there[] = {{.ids = to}};
  std::uint64_t bytes = 0;
  for (std::uint32_t layer = 0; layer < model.layers; layer += 8) {
    const auto made = plan(src, here, dst, there, {.count = 75}, LayerRange{layer, 8});
    ASSERT_TRUE(made) << made.error().message();
    bytes += made->bytes;
  }
  EXPECT_EQ(bytes, 75 * prefill.bytes_per_token());
}

TEST(KvModels, StagesHaveAllLayersOnce) {
  for (std::uint32_t layers = 1; layers < 100; ++layers)
    for (std::uint32_t size = 1; size <= 16; ++size) {
      std::uint32_t next = 0;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const LayerRange range = stage_layers(layers, {size, rank});
        ASSERT_EQ(range.first, next) << layers << " layers, stage " << rank << " of " << size;
        next += range.count;
      }
      ASSERT_EQ(next, layers);
    }
  // What vLLM does with 61 layers in 4 stages.
  EXPECT_EQ(stage_layers(61, {4, 2}).count, 16u);
  EXPECT_EQ(stage_layers(61, {4, 3}).count, 15u);
}

}  // namespace
}  // namespace weft::kv
