// The tensors of known models, and worlds made of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <weft/weights_models.hpp>

#include "configs.hpp"
#include "memory.hpp"

namespace weft::weights {
namespace {

const ModelTensor& tensor_of(const Model& model, std::string_view name) {
  const auto it = std::find_if(model.tensors.begin(), model.tensors.end(),
                               [&](const ModelTensor& tensor) { return tensor.name == name; });
  EXPECT_NE(it, model.tensors.end()) << name;
  return it == model.tensors.end() ? model.tensors.front() : *it;
}

World world_of(const Model& model, const char* trainers, const char* workers) {
  return {
      model
          .ranks(
              {.parallel = parse_parallelism(trainers).value(), .name = "trainer", .host = "train"})
          .value(),
      model
          .ranks(
              {.parallel = parse_parallelism(workers).value(), .name = "worker", .host = "serve"})
          .value()};
}

TEST(WeightsModels, HaveTheParametersThatTheirAuthorsTellOf) {
  // Sum of the elements of the safetensors files of each, on the Hugging Face hub.
  EXPECT_EQ(from_config(test::llama_8b).value().parameters(), 8'030'261'248U);
  EXPECT_EQ(from_config(test::qwen3_8b).value().parameters(), 8'190'735'360U);
  EXPECT_EQ(from_config(test::qwen3_30b).value().parameters(), 30'532'122'624U);
  // 671B, as DeepSeek's report says, without the layer that predicts further tokens.
  EXPECT_NEAR(static_cast<double>(from_config(test::deepseek_v3).value().parameters()), 671e9, 5e8);
  EXPECT_NEAR(static_cast<double>(from_config(test::kimi_k2).value().parameters()), 1026e9, 1e9);
}

TEST(WeightsModels, QuantizedOnesHaveAScaleForEachBlock) {
  const auto model = from_config(test::deepseek_v3).value();
  const auto& weight = tensor_of(model, "model.layers.3.mlp.experts.255.down_proj.weight");
  EXPECT_EQ(weight.dtype, DType::fp8_e4m3);
  EXPECT_EQ(weight.shape, (Dims{7168, 2048}));
  const auto& scale = tensor_of(model, "model.layers.3.mlp.experts.255.down_proj.weight_scale_inv");
  EXPECT_EQ(scale.dtype, DType::fp32);
  EXPECT_EQ(scale.shape, (Dims{56, 16}));
  EXPECT_EQ(tensor_of(model, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight").shape,
            (Dims{576, 7168}));
}

TEST(WeightsModels, TensorParallelRanksHaveTheirHeads) {
  const auto model = from_config(test::llama_8b).value();
  const auto ranks = model.ranks({.parallel = {.tp = 16}}).value();
  ASSERT_EQ(ranks.size(), 16U);
  const auto find = [&](const Rank& rank, std::string_view name) {
    return *std::find_if(rank.shards.begin(), rank.shards.end(),
                         [&](const Shard& shard) { return shard.name == name; });
  };
  EXPECT_EQ(find(ranks[5], "model.layers.0.self_attn.q_proj.weight").begin, (Dims{1280, 0}));
  // 8 heads of keys: two ranks have each.
  EXPECT_EQ(find(ranks[5], "model.layers.0.self_attn.k_proj.weight").begin, (Dims{256, 0}));
  EXPECT_EQ(find(ranks[5], "model.layers.0.self_attn.k_proj.weight").extent, (Dims{128, 4096}));
  EXPECT_EQ(find(ranks[5], "model.layers.0.self_attn.o_proj.weight").extent, (Dims{4096, 256}));
  EXPECT_EQ(find(ranks[5], "model.norm.weight").extent, (Dims{4096}));
}

TEST(WeightsModels, EveryRankIsServedWithAllItWants) {
  for (const auto& [config, trainers, workers] :
       {std::tuple{test::llama_8b, "fsdp=16", "tp=8,replicas=2"},
        std::tuple{test::llama_8b, "tp=4,pp=3,replicas=2", "tp=2,pp=2"},
        std::tuple{test::qwen3_30b, "fsdp=12,ep=4", "dp=2,tp=4,ep=8"},
        std::tuple{test::qwen3_30b, "tp=4,pp=2", "tp=8"}}) {
    const auto model = from_config(config).value();
    const World world = world_of(model, trainers, workers);
    const auto made = plan(world);
    ASSERT_TRUE(made) << made.error().to_string();
    std::uint64_t wanted = 0;
    for (const Rank& rank : world.subscribers)
      for (const Shard& shard : rank.shards)
        wanted += std::accumulate(shard.extent.begin(), shard.extent.end(),
                                  std::uint64_t{bytes_of(shard.dtype)}, std::multiplies<>());
    EXPECT_EQ(made->bytes, wanted);
  }
}

/// A model of every kind, small enough for its bytes to be looked at.
TEST(WeightsModels, TinyOnesArriveByteByByte) {
  for (const char* config : {test::tiny_qwen2, test::tiny_moe, test::tiny_deepseek})
    for (const auto& [trainers, workers] :
         {std::pair{"fsdp=3", "tp=2,replicas=2"}, std::pair{"tp=2,fsdp=3,ep=3", "dp=2,tp=2,ep=4"},
          std::pair{"pp=2,replicas=2", "tp=4"}}) {
      const World world = world_of(from_config(config).value(), trainers, workers);
      for (const FanOut fan_out : {FanOut::direct, FanOut::chain}) {
        const auto made =
            plan(world, {.fan_out = fan_out, .chunk_bytes = 10'000, .chain_from_bytes = 0});
        ASSERT_TRUE(made) << made.error().to_string();
        EXPECT_EQ(test::carry(world, *made), "") << config << trainers << workers;
      }
    }
}

TEST(WeightsModels, ParallelismIsRead) {
  const auto parallel = parse_parallelism("tp=8,ep=16,fsdp=2,dp=3,pp=4,replicas=5").value();
  EXPECT_EQ(parallel.tp, 8U);
  EXPECT_EQ(parallel.ep, 16U);
  EXPECT_EQ(parallel.fsdp, 2U);
  EXPECT_EQ(parallel.dp, 3U);
  EXPECT_EQ(parallel.pp, 4U);
  EXPECT_EQ(parallel.replicas, 5U);
  EXPECT_TRUE(parse_parallelism(""));
  for (const char* text :
       {"tp", "tp=", "tp=0", "tp=-1", "tp=2x", "tp=2,tp=2", "xp=2", "=2", ",", "tp=99999999999"})
    EXPECT_FALSE(parse_parallelism(text)) << text;
}

TEST(WeightsModels, WhatCannotBeDealtOutIsRefused) {
  const auto model = from_config(test::llama_8b).value();
  EXPECT_FALSE(model.ranks({.parallel = {.tp = 3}}));
  EXPECT_FALSE(model.ranks({.parallel = {.tp = 0}}));
  EXPECT_FALSE(model.ranks({.parallel = {.ep = 2}}));
  EXPECT_FALSE(model.ranks({.parallel = {.tp = 60'000, .replicas = 60'000}}));
  EXPECT_FALSE(model.ranks({.ranks_per_host = 0}));
  // Rows of 64 are no whole blocks of scales.
  EXPECT_FALSE(from_config(test::deepseek_v3).value().ranks({.parallel = {.tp = 32}}));
}

TEST(WeightsModels, UnknownConfigsAreRefused) {
  for (const char* config : {
           "",
           "[]",
           "{}",
           R"({"model_type":"gpt2"})",
           R"({"model_type":"llama"})",
           R"({"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":4096,
               "num_experts":16777216,"moe_intermediate_size":8,"num_attention_heads":2,
               "num_key_value_heads":2,"head_dim":8,"vocab_size":9})",
           R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"intermediate_size":8,
               "num_attention_heads":2,"num_key_value_heads":2,"vocab_size":9,
               "attention_bias":true})",
           R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"intermediate_size":8,
               "num_attention_heads":2,"num_key_value_heads":2,"vocab_size":9,
               "quantization_config":{"quant_method":"awq"}})",
       }) {
    const auto model = from_config(config);
    ASSERT_FALSE(model) << config;
    EXPECT_TRUE(model.error().code() == Code::unsupported ||
                model.error().code() == Code::invalid_argument);
  }
}

}  // namespace
}  // namespace weft::weights
