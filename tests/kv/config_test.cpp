#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weft/kv_models.hpp>

namespace weft::kv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* llama = R"("model_type": "llama", "num_hidden_layers": 4,
  "num_key_value_heads": 2, "hidden_size": 64, "num_attention_heads": 8)";

Result<Model> read(const std::string& members) {
  return from_config("{" + members + "}", "a model");
}

void expect_refused(const std::string& members, Code code, const char* word) {
  const auto model = read(members);
  ASSERT_FALSE(model) << members;
  EXPECT_EQ(model.error().code(), code) << model.error().message();
  EXPECT_THAT(model.error().message(), HasSubstr(word));
}

TEST(KvConfig, AModelOfAttention) {
  const auto model = read(std::string(llama) + R"(, "sliding_window": null, "vocab_size": 9)");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->name, "a model");
  EXPECT_EQ(model->layers, 4u);
  EXPECT_EQ(model->bytes_per_token(DType::bf16), 4u * 2 * 2 * 8 * 2);
}

TEST(KvConfig, TheLanguageModelMayBeNested) {
  const auto model = read(fmt::format(R"("model_type": "x", "text_config": {{{}}})", llama));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->layers, 4u);
}

// As in Nemotron-H's file: "time_step_limit": [0.0, Infinity].
TEST(KvConfig, NumbersOfPythonAreNoReasonToRefuse) {
  const auto model =
      read(std::string(llama) + R"(, "a": [0.0, Infinity, -Infinity, NaN], "b": "\"NaN\\")");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(read(std::string(llama) + R"(, "a": Infinite)"));
}

TEST(KvConfig, LayersOfSeveralKinds) {
  const auto model = read(R"("model_type": "gpt_oss", "num_hidden_layers": 3,
    "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"])");
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_EQ(model->kinds.size(), 2u);
  EXPECT_THAT(model->kinds[0].layers, ElementsAre(0, 2));
  EXPECT_EQ(model->kinds[0].window, 16u);
}

TEST(KvConfig, UnknownModelsAreRefused) {
  expect_refused(R"("model_type": "deepseek_v4", "num_hidden_layers": 4)", Code::unsupported,
                 "\"model_type\" is \"deepseek_v4\", which is unknown; known are");
}

// Not to be read over: each changes what a layer keeps.
TEST(KvConfig, UnknownKeysThatChangeACacheAreNamed) {
  for (const char* key : {"sliding_window", "kv_lora_rank", "compress_ratios", "index_head_dim",
                          "num_kv_shared_layers", "linear_attn_config"}) {
    expect_refused(fmt::format("{}, \"{}\": [5]", llama, key), Code::unsupported, key);
    EXPECT_TRUE(read(fmt::format("{}, \"{}\": null", llama, key)));
  }
  expect_refused(R"("model_type": "qwen3", "use_sliding_window": true)", Code::unsupported,
                 "use_sliding_window");
}

TEST(KvConfig, UnknownLayersAreNamed) {
  expect_refused(std::string(llama) + R"(, "layer_types": [1, 2, 3, 4])", Code::unsupported,
                 "\"layer_types\" has 1 for layer 0");
  expect_refused(R"("model_type": "nemotron_h", "hybrid_override_pattern": "M*?")",
                 Code::unsupported, "\"?\" for layer 2");
  expect_refused(R"("model_type": "glm_moe_dsa", "num_hidden_layers": 2, "kv_lora_rank": 512,
    "qk_rope_head_dim": 64, "index_head_dim": 128, "indexer_types": ["full", "shared"])",
                 Code::unsupported, "\"indexer_types\" has \"shared\" for layer 1");
}

TEST(KvConfig, WrongNumbersAreNamed) {
  expect_refused(R"("model_type": "llama")", Code::invalid_argument,
                 "\"num_hidden_layers\" is missing");
  expect_refused(R"("model_type": "llama", "num_hidden_layers": -1)", Code::invalid_argument,
                 "\"num_hidden_layers\" is -1");
  expect_refused(R"("model_type": "llama", "num_hidden_layers": 5000)", Code::invalid_argument,
                 "must be at most 4096");
  expect_refused(R"("model_type": "llama", "num_hidden_layers": 1, "head_dim": 8,
    "num_key_value_heads": 1e99)",
                 Code::invalid_argument, "\"num_key_value_heads\" is 1e+99");
  expect_refused(R"("model_type": 3)", Code::invalid_argument, "must be a text");
  expect_refused(R"("model_type": "nemotron_h", "hybrid_override_pattern": "--",
    "num_key_value_heads": 2, "head_dim": 8, "mamba_num_heads": 2, "mamba_head_dim": 8,
    "n_groups": 1, "ssm_state_size": 8, "conv_kernel": 4)",
                 Code::invalid_argument, "none of the 2 layers keeps anything");
  EXPECT_EQ(from_config("[]").error().code(), Code::invalid_argument);
  EXPECT_EQ(from_config("{").error().code(), Code::invalid_argument);
  EXPECT_EQ(from_config("").error().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace weft::kv
