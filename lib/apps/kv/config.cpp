// Hugging Face's config.json as a model's KV shape.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <weft/kv_models.hpp>

#include "kv/config_file.hpp"

namespace weft::kv {

namespace {

constexpr std::uint32_t greatest_product = 1 << 28;
constexpr std::uint32_t greatest_kernel = 64;  // of a convolution: models have 4

/// They change a cache.
constexpr std::array changing = {"attention_chunk_size",
                                 "attention_k_eq_v",
                                 "attn_layer_period",
                                 "attn_type_list",
                                 "block_configs",
                                 "compress_ratios",
                                 "conv_L_cache",
                                 "cross_attention_layers",
                                 "encoder_layers",
                                 "full_attention_interval",
                                 "global_head_dim",
                                 "hybrid_layer_pattern",
                                 "hybrid_override_pattern",
                                 "index_head_dim",
                                 "indexer_types",
                                 "is_encoder_decoder",
                                 "kv_lora_rank",
                                 "layer_types",
                                 "layers_block_type",
                                 "linear_attn_config",
                                 "linear_num_value_heads",
                                 "mamba_d_state",
                                 "num_global_key_value_heads",
                                 "num_kv_shared_layers",
                                 "sliding_window",
                                 "sliding_window_pattern",
                                 "sparse_attention_config",
                                 "ssm_state_size",
                                 "swa_head_dim",
                                 "swa_num_key_value_heads",
                                 "use_sliding_window",
                                 "v_head_dim"};

DType type_of(const ConfigFile& config, const char* key, DType otherwise) {
  if (!config.has(key)) return otherwise;
  const std::string name = config.text(key);
  if (name == "float32") return DType::fp32;
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16") return DType::fp16;
  refuse(Code::unsupported, "\"{}\" is \"{}\", which is unknown", key, name);
}

std::vector<std::uint32_t> every_layer(std::uint32_t layers) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t layer = 0; layer < layers; ++layer) numbers.push_back(layer);
  return numbers;
}

std::vector<Field> attention_of(const ConfigFile& config, const char* size_key = "head_dim") {
  return keys_values(config.number("num_key_value_heads"), head_size(config, size_key));
}

/// Two numbers of the file: far from what a cache can have, they are refused.
std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  if (std::uint64_t{a} * b > greatest_product)
    refuse(Code::invalid_argument, "{} times {} are more elements than a cache can have", a, b);
  return a * b;
}

/// Adds a kind if it has layers.
void add_kind(Model& model, Kind kind) {
  if (!kind.layers.empty()) model.kinds.push_back(std::move(kind));
}

/// Layers by what a list with an entry for each says of them.
std::vector<std::uint32_t> layers_named(const Json& list, std::uint32_t layers,
                                        std::string_view name) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    if (list[layer] == name) numbers.push_back(layer);
  return numbers;
}

void check_names(const char* key, const Json& list, std::uint32_t layers,
                 const std::set<std::string>& known) {
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    if (!list[layer].is_string() || !known.contains(list[layer].get<std::string>()))
      refuse(Code::unsupported, "\"{}\" has {} for layer {}, which is unknown", key,
             list[layer].dump(), layer);
}

// Keys and values in every layer.
void read_attention(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  if (config.has("layer_types")) {
    const Json& types = config.list("layer_types", model.layers);
    check_names("layer_types", types, model.layers, {"full_attention"});
  }
  add_kind(model, {"attention", every_layer(model.layers), attention_of(config)});
}

/// As attention, with a window that is stated and turned off.
void read_qwen(const ConfigFile& config, Model& model) {
  if (config.has("use_sliding_window"))
    refuse(Code::unsupported, "\"use_sliding_window\" is true, and its layers are not known");
  (void)config.has("sliding_window");
  read_attention(config, model);
}

/// As attention; a window, where there is one, is of every layer.
void read_mistral(const ConfigFile& config, Model& model) {
  read_attention(config, model);
  if (!config.has("sliding_window")) return;
  model.kinds.front().name = "window";
  model.kinds.front().window = config.number("sliding_window");
}

/// Chunked layers look back on part of a chunk: they count as attention on all tokens.
void read_llama4(const ConfigFile& config, Model& model) {
  (void)config.has("attention_chunk_size");
  if (config.has("layer_types")) {
    const auto layers = layer_count(config);
    check_names("layer_types", config.list("layer_types", layers), layers,
                {"full_attention", "chunked_attention"});
  }
  model.layers = layer_count(config);
  add_kind(model, {"attention", every_layer(model.layers), attention_of(config)});
}

/// Entries of attn_type_list are 1 for attention on all tokens.
void read_minimax(const ConfigFile& config, Model& model) {
  read_attention(config, model);
  if (!config.has("attn_type_list")) return;
  for (const Json& type : config.list("attn_type_list", model.layers))
    if (type != 1)
      refuse(Code::unsupported, "\"attn_type_list\" has {}, which is unknown", type.dump());
}

/// Layers with a window and layers without, named one by one or every n-th without.
void read_windows(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  const auto fields = attention_of(config);
  std::vector<std::uint32_t> windowed, full;
  if (config.has("layer_types")) {
    const Json& types = config.list("layer_types", model.layers);
    check_names("layer_types", types, model.layers, {"sliding_attention", "full_attention"});
    windowed = layers_named(types, model.layers, "sliding_attention");
    full = layers_named(types, model.layers, "full_attention");
    (void)config.has("sliding_window_pattern");
  } else {
    const std::uint32_t every = config.number("sliding_window_pattern");
    for (std::uint32_t layer = 0; layer < model.layers; ++layer)
      ((layer + 1) % every == 0 ? full : windowed).push_back(layer);
  }
  add_kind(model, {"window", windowed, fields, config.number("sliding_window")});
  add_kind(model, {"attention", full, fields});
}

/// Windowed layers have other heads, and values are smaller than keys.
void read_mimo(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  const Json& pattern = config.list("hybrid_layer_pattern", model.layers);
  std::vector<std::uint32_t> windowed, full;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    if (pattern[layer] != 0 && pattern[layer] != 1)
      refuse(Code::unsupported, "\"hybrid_layer_pattern\" has {} for layer {}, which is unknown",
             pattern[layer].dump(), layer);
    (pattern[layer] == 1 ? windowed : full).push_back(layer);
  }
  (void)config.has("attention_chunk_size");
  add_kind(model,
           {"window", windowed,
            keys_values(config.number("swa_num_key_value_heads"), config.number("swa_head_dim"),
                        DType::bf16, config.number("swa_v_head_dim")),
            config.number("sliding_window")});
  add_kind(model, {"attention", full,
                   keys_values(config.number("num_key_value_heads"), config.number("head_dim"),
                               DType::bf16, config.number("v_head_dim"))});
}

std::vector<Field> latent_of(const ConfigFile& config) {
  // Keys and values are computed from the latent and never cached.
  (void)config.has("v_head_dim");
  return latent(config.number("kv_lora_rank") + config.number("qk_rope_head_dim"));
}

void read_latents(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  add_kind(model, {"latent", every_layer(model.layers), latent_of(config)});
}

/// Latents, and the keys of the indexer that chooses tokens. `indexer_types` may share them between
/// layers: what servers then keep is not known.
void read_indexed_latents(const ConfigFile& config, Model& model) {
  read_latents(config, model);
  if (config.has("indexer_types"))
    check_names("indexer_types", config.list("indexer_types", model.layers), model.layers,
                {"full"});
  add_kind(model,
           {"index", every_layer(model.layers), index_keys(config.number("index_head_dim"))});
}

std::uint32_t kernel_of(const ConfigFile& config, const char* key) {
  const std::uint32_t kernel = config.number(key, 2);
  if (kernel > greatest_kernel)
    refuse(Code::invalid_argument, "\"{}\" is {} and must be at most {}", key, kernel,
           greatest_kernel);
  return kernel;
}

/// A gated delta net's state.
std::vector<Field> delta_net_of(const ConfigFile& config) {
  const std::uint32_t key_heads = config.number("linear_num_key_heads");
  const std::uint32_t key_size = config.number("linear_key_head_dim");
  const std::uint32_t value_heads = config.number("linear_num_value_heads");
  const std::uint32_t value_size = config.number("linear_value_head_dim");
  const ConvRow rows[] = {
      {"q", key_heads, key_size}, {"k", key_heads, key_size}, {"v", value_heads, value_size}};
  return recurrent_state(rows, kernel_of(config, "linear_conv_kernel_dim"), ConvOrder::channels,
                         DType::bf16, value_heads, product(value_size, key_size),
                         type_of(config, "mamba_ssm_dtype", DType::bf16));
}

void read_delta_nets(const ConfigFile& config, Model& model) {
  if (config.has("use_sliding_window"))
    refuse(Code::unsupported, "\"use_sliding_window\" is true, and its layers are not known");
  model.layers = layer_count(config);
  std::vector<std::uint32_t> linear, full;
  (void)config.has("full_attention_interval");
  if (config.has("layer_types")) {
    const Json& types = config.list("layer_types", model.layers);
    check_names("layer_types", types, model.layers, {"linear_attention", "full_attention"});
    linear = layers_named(types, model.layers, "linear_attention");
    full = layers_named(types, model.layers, "full_attention");
  } else {
    const std::uint32_t every = config.number("full_attention_interval");
    for (std::uint32_t layer = 0; layer < model.layers; ++layer)
      ((layer + 1) % every == 0 ? full : linear).push_back(layer);
  }
  add_kind(model, {"attention", full, attention_of(config)});
  add_kind(model, {"state", linear, delta_net_of(config), 0, true});
}

/// Mamba 2.
std::vector<Field> mamba2(std::uint32_t heads, std::uint32_t head, std::uint32_t groups,
                          std::uint32_t state, std::uint32_t kernel, DType type) {
  const ConvRow rows[] = {{"x", heads, head}, {"B", groups, state}, {"C", groups, state}};
  return recurrent_state(rows, kernel, ConvOrder::channels, DType::bf16, heads,
                         product(head, state), type);
}

/// A letter or a word for each layer: mamba, attention, or what keeps nothing.
void read_nemotron(const ConfigFile& config, Model& model) {
  std::vector<std::uint32_t> mamba, attention;
  const auto take = [&](const std::string& kind, std::uint32_t layer) {
    if (kind == "M" || kind == "mamba")
      mamba.push_back(layer);
    else if (kind == "*" || kind == "attention")
      attention.push_back(layer);
    else if (kind != "-" && kind != "E" && kind != "mlp" && kind != "moe")
      refuse(Code::unsupported, "the pattern of layers has \"{}\" for layer {}, which is unknown",
             kind, layer);
  };
  if (config.has("hybrid_override_pattern")) {
    const std::string pattern = config.text("hybrid_override_pattern");
    model.layers = static_cast<std::uint32_t>(std::min<std::size_t>(pattern.size(), most_layers));
    for (std::uint32_t layer = 0; layer < model.layers; ++layer) take({pattern[layer]}, layer);
    if (config.has("num_hidden_layers") && config.number("num_hidden_layers") != model.layers)
      refuse(Code::invalid_argument,
             "\"num_hidden_layers\" and \"hybrid_override_pattern\" have different lengths");
  } else {
    const Json& kinds = config.list("layers_block_type", 1);
    model.layers = static_cast<std::uint32_t>(std::min<std::size_t>(kinds.size(), most_layers));
    for (std::uint32_t layer = 0; layer < model.layers; ++layer)
      take(kinds[layer].is_string() ? kinds[layer].get<std::string>() : kinds[layer].dump(), layer);
  }
  const char* size_key = config.has("attention_head_dim") ? "attention_head_dim" : "head_dim";
  add_kind(model, {"attention", attention, attention_of(config, size_key)});
  add_kind(model, {"state", mamba,
                   mamba2(config.number("mamba_num_heads"), config.number("mamba_head_dim"),
                          config.number("n_groups"), config.number("ssm_state_size"),
                          kernel_of(config, "conv_kernel"),
                          type_of(config, "mamba_ssm_cache_dtype", DType::bf16)),
                   0, true});
}

void read_granite(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  const Json& types = config.list("layer_types", model.layers);
  check_names("layer_types", types, model.layers, {"mamba", "attention"});
  add_kind(model,
           {"attention", layers_named(types, model.layers, "attention"), attention_of(config)});
  add_kind(model, {"state", layers_named(types, model.layers, "mamba"),
                   mamba2(config.number("mamba_n_heads"), config.number("mamba_d_head"),
                          config.number("mamba_n_groups"), config.number("mamba_d_state"),
                          kernel_of(config, "mamba_d_conv"), DType::bf16),
                   0, true});
}

/// Mamba 1: each channel is a head.
void read_jamba(const ConfigFile& config, Model& model) {
  model.layers = layer_count(config);
  const std::uint32_t period = config.number("attn_layer_period");
  const std::uint32_t offset = config.number("attn_layer_offset", 0);
  const std::uint32_t channels =
      product(config.number("mamba_expand"), config.number("hidden_size"));
  std::vector<std::uint32_t> mamba, attention;
  for (std::uint32_t layer = 0; layer < model.layers; ++layer)
    (layer % period == offset ? attention : mamba).push_back(layer);
  const ConvRow rows[] = {{"x", channels, 1}};
  add_kind(model, {"attention", attention, attention_of(config)});
  add_kind(model,
           {"state", mamba,
            recurrent_state(rows, kernel_of(config, "mamba_d_conv"), ConvOrder::channels,
                            DType::bf16, channels, config.number("mamba_d_state"), DType::bf16),
            0, true});
}

using Reader = void (*)(const ConfigFile&, Model&);

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> known = {
      {"llama", read_attention},
      {"granite", read_attention},
      {"glm4_moe", read_attention},
      {"qwen2", read_qwen},
      {"qwen2_moe", read_qwen},
      {"qwen3", read_qwen},
      {"qwen3_moe", read_qwen},
      {"mistral", read_mistral},
      {"ministral3", read_mistral},
      {"mixtral", read_mistral},
      {"llama4_text", read_llama4},
      {"minimax_m2", read_minimax},
      {"gpt_oss", read_windows},
      {"gemma3_text", read_windows},
      {"mimo_v2_flash", read_mimo},
      {"deepseek_v3", read_latents},
      {"kimi_k2", read_latents},
      {"deepseek_v32", read_indexed_latents},
      {"glm_moe_dsa", read_indexed_latents},
      {"qwen3_next", read_delta_nets},
      {"qwen3_5_text", read_delta_nets},
      {"qwen3_5_moe_text", read_delta_nets},
      {"nemotron_h", read_nemotron},
      {"granitemoehybrid", read_granite},
      {"jamba", read_jamba},
  };
  return known;
}

Model read_file(const Json& file, std::string name) {
  if (!file.is_object()) refuse(Code::invalid_argument, "the file must have an object");
  const bool nested = file.contains("text_config") && !file.contains("num_hidden_layers");
  const ConfigFile whole(file);
  const ConfigFile config = nested ? whole.part("text_config") : whole;
  const auto reader = reader_of(config, readers());
  Model model;
  model.name = std::move(name);
  reader(config, model);
  config.refuse_unasked(changing, "the cache");
  if (model.kinds.empty())
    refuse(Code::invalid_argument, "none of the {} layers keeps anything", model.layers);
  return model;
}

}  // namespace

Result<Model> from_config(std::string_view json, std::string name) {
  try {
    return read_file(Json::parse(without_python_numbers(json)), std::move(name));
  } catch (const Refused& refused) {
    return fail(refused.code, fmt::format("The config.json can't be used: {}.", refused.what()));
  } catch (const Json::exception& error) {
    return fail(Code::invalid_argument,
                fmt::format("The config.json can't be read: {}.", error.what()));
  }
}

}  // namespace weft::kv
