// Hugging Face's config.json as the tensors of a model.
#include <fmt/format.h>

#include <map>
#include <weft/weights_models.hpp>

#include "kv/config_file.hpp"

namespace weft::weights {

namespace {

using kv::ConfigFile;
using kv::Json;
using kv::refuse;

/// They change weights.
constexpr std::array changing = {
    "attention_bias",      "is_encoder_decoder", "mlp_bias",         "mlp_only_layers",
    "num_experts",         "n_routed_experts",   "n_shared_experts", "quantization_config",
    "decoder_sparse_step", "moe_layer_freq",     "vision_config",
};

/// Side of the blocks that have a scale each; 0: nothing is quantized.
std::uint32_t block_of(const ConfigFile& config) {
  if (!config.has("quantization_config")) return 0;
  const ConfigFile quantization = config.part("quantization_config");
  const std::string method = quantization.text("quant_method");
  if (method != "fp8")
    refuse(Code::unsupported, "\"quant_method\" is \"{}\", and only \"fp8\" is known", method);
  const Json& sides = quantization.at("weight_block_size");
  constexpr std::uint32_t most = 1 << 16;
  if (!sides.is_array() || sides.size() != 2 || sides[0] != sides[1] ||
      !sides[0].is_number_unsigned() || sides[0] < 1 || sides[0] > most)
    refuse(Code::unsupported, "\"weight_block_size\" is {}, and only squares are known",
           sides.dump());
  return sides[0].get<std::uint32_t>();
}

DType type_of(const ConfigFile& config) {
  const char* key = config.has("dtype") ? "dtype" : "torch_dtype";
  if (!config.has(key)) return DType::bf16;
  const auto type = dtype_named(config.text(key));
  if (!type) refuse(Code::unsupported, "\"{}\" is unknown: {}", key, type.error().message());
  return *type;
}

/// How a matrix is dealt out.
struct Deal {
  std::optional<std::uint32_t> cut;
  std::uint32_t units = 0;
};

/// Collects tensors.
class Collector {
 public:
  explicit Collector(const ConfigFile& config)
      : config(config),
        hidden(config.number("hidden_size")),
        layers(kv::layer_count(config)),
        type_(type_of(config)),
        block_(block_of(config)) {
    model.layers = layers;
  }

  void in_layer(std::uint32_t layer) {
    layer_ = layer;
    prefix_ = fmt::format("model.layers.{}.", layer);
    expert_.reset();
  }
  void at_end(std::uint32_t layer) {
    layer_ = layer;
    prefix_.clear();
    expert_.reset();
  }
  void of_expert(std::optional<std::uint32_t> expert) { expert_ = expert; }

  /// A tensor that is never quantized.
  void plain(const std::string& name, Dims shape, Deal deal = {}, std::optional<DType> type = {}) {
    model.tensors.push_back(
        {prefix_ + name, type.value_or(type_), shape, layer_, deal.cut, deal.units, expert_});
  }
  /// The weight of a linear layer, and its scales where it is quantized.
  void linear(const std::string& name, std::uint64_t out, std::uint64_t in, Deal deal = {}) {
    if (block_ == 0) return plain(name + ".weight", {out, in}, deal);
    plain(name + ".weight", {out, in}, deal, DType::fp8_e4m3);
    const auto blocks = [&](std::uint64_t n) { return (n + block_ - 1) / block_; };
    // Units of scales are blocks, so that ranks have whole ones.
    if (deal.cut) {
      const std::uint64_t size = *deal.cut == 0 ? out : in;
      const std::uint64_t unit = deal.units == 0 ? 1 : size / deal.units;
      deal.units = unit % block_ == 0 ? deal.units : static_cast<std::uint32_t>(blocks(size));
    }
    plain(name + ".weight_scale_inv", {blocks(out), blocks(in)}, deal, DType::fp32);
  }

  const ConfigFile& config;
  const std::uint32_t hidden;
  const std::uint32_t layers;
  Model model;

 private:
  const DType type_;
  const std::uint32_t block_;
  std::uint32_t layer_ = 0;
  std::string prefix_;
  std::optional<std::uint32_t> expert_;
};

void add_ends(Collector& out) {
  const std::uint64_t vocabulary = out.config.number("vocab_size");
  out.at_end(0);
  out.plain("model.embed_tokens.weight", {vocabulary, out.hidden}, {0});
  out.at_end(out.layers - 1);
  out.plain("model.norm.weight", {out.hidden});
  if (!out.config.has("tie_word_embeddings"))
    out.plain("lm_head.weight", {vocabulary, out.hidden}, {0});
}

void add_norms(Collector& out) {
  out.plain("input_layernorm.weight", {out.hidden});
  out.plain("post_attention_layernorm.weight", {out.hidden});
}

void add_mlp(Collector& out, const std::string& name, std::uint32_t size) {
  out.linear(name + ".gate_proj", size, out.hidden, {0, size});
  out.linear(name + ".up_proj", size, out.hidden, {0, size});
  out.linear(name + ".down_proj", out.hidden, size, {1, size});
}

/// A file of few bytes must not describe more than memory holds.
void read_experts(Collector& out, const char* key) {
  constexpr std::uint64_t most_experts = 1 << 20;  // of all layers; Kimi K2 has 23,040
  out.model.experts = out.config.number(key);
  if (std::uint64_t{out.model.experts} * out.layers > most_experts)
    refuse(Code::invalid_argument, "\"{}\" is {}, which are too many in {} layers", key,
           out.model.experts, out.layers);
}

void add_experts(Collector& out, std::uint32_t size) {
  for (std::uint32_t e = 0; e < out.model.experts; ++e) {
    out.of_expert(e);
    add_mlp(out, fmt::format("mlp.experts.{}", e), size);
  }
  out.of_expert({});
}

struct AttentionKind {
  bool biased = false;
  bool normed = false;
};

/// Queries, keys and values in heads.
void add_attention(Collector& out, AttentionKind kind) {
  const std::uint32_t heads = out.config.number("num_attention_heads");
  const std::uint32_t kv_heads = out.config.number("num_key_value_heads");
  const std::uint64_t size = kv::head_size(out.config);
  const auto add = [&](const std::string& name, std::uint32_t count) {
    const std::uint64_t rows = count * size;
    out.linear("self_attn." + name, rows, out.hidden, {0, count});
    if (kind.biased) out.plain("self_attn." + name + ".bias", {rows}, {0, count});
  };
  add("q_proj", heads);
  add("k_proj", kv_heads);
  add("v_proj", kv_heads);
  out.linear("self_attn.o_proj", out.hidden, heads * size, {1, heads});
  if (!kind.normed) return;
  out.plain("self_attn.q_norm.weight", {size});
  out.plain("self_attn.k_norm.weight", {size});
}

void add_dense(Collector& out, AttentionKind kind) {
  const std::uint32_t size = out.config.number("intermediate_size");
  for (std::uint32_t layer = 0; layer < out.layers; ++layer) {
    out.in_layer(layer);
    add_norms(out);
    add_attention(out, kind);
    add_mlp(out, "mlp", size);
  }
}

void read_llama(Collector& out) {
  add_dense(out, {});
}

void read_qwen2(Collector& out) {
  add_dense(out, {.biased = true});
}

void read_qwen3(Collector& out) {
  add_dense(out, {.normed = true});
}

void read_qwen3_moe(Collector& out) {
  const std::uint32_t size = out.config.number("moe_intermediate_size");
  read_experts(out, "num_experts");
  if (out.config.has("decoder_sparse_step") && out.config.number("decoder_sparse_step") != 1)
    refuse(Code::unsupported, "\"decoder_sparse_step\" is not 1, and dense layers are not known");
  for (std::uint32_t layer = 0; layer < out.layers; ++layer) {
    out.in_layer(layer);
    add_norms(out);
    add_attention(out, {.normed = true});
    out.plain("mlp.gate.weight", {out.model.experts, out.hidden});
    add_experts(out, size);
  }
}

/// Multi-head latent attention.
void add_latent_attention(Collector& out) {
  const ConfigFile& config = out.config;
  const std::uint32_t heads = config.number("num_attention_heads");
  const std::uint64_t nope = config.number("qk_nope_head_dim");
  const std::uint64_t rope = config.number("qk_rope_head_dim");
  const std::uint64_t value = config.number("v_head_dim");
  const std::uint64_t latent = config.number("kv_lora_rank");
  const std::uint64_t query_rows = heads * (nope + rope);
  if (config.has("q_lora_rank")) {
    const std::uint64_t rank = config.number("q_lora_rank");
    out.linear("self_attn.q_a_proj", rank, out.hidden);
    out.plain("self_attn.q_a_layernorm.weight", {rank});
    out.linear("self_attn.q_b_proj", query_rows, rank, {0, heads});
  } else {
    out.linear("self_attn.q_proj", query_rows, out.hidden, {0, heads});
  }
  out.linear("self_attn.kv_a_proj_with_mqa", latent + rope, out.hidden);
  out.plain("self_attn.kv_a_layernorm.weight", {latent});
  out.linear("self_attn.kv_b_proj", heads * (nope + value), latent, {0, heads});
  out.linear("self_attn.o_proj", out.hidden, heads * value, {1, heads});
}

void read_deepseek(Collector& out) {
  const ConfigFile& config = out.config;
  const std::uint32_t dense_size = config.number("intermediate_size");
  const std::uint32_t expert_size = config.number("moe_intermediate_size");
  const std::uint32_t dense_layers = config.number("first_k_dense_replace", 0);
  const std::uint32_t shared =
      config.has("n_shared_experts") ? config.number("n_shared_experts") : 0;
  if (config.has("moe_layer_freq") && config.number("moe_layer_freq") != 1)
    refuse(Code::unsupported, "\"moe_layer_freq\" is not 1");
  read_experts(out, "n_routed_experts");
  for (std::uint32_t layer = 0; layer < out.layers; ++layer) {
    out.in_layer(layer);
    add_norms(out);
    add_latent_attention(out);
    if (layer < dense_layers) {
      add_mlp(out, "mlp", dense_size);
      continue;
    }
    out.plain("mlp.gate.weight", {out.model.experts, out.hidden});
    out.plain("mlp.gate.e_score_correction_bias", {out.model.experts}, {}, DType::fp32);
    if (shared > 0) add_mlp(out, "mlp.shared_experts", shared * expert_size);
    add_experts(out, expert_size);
  }
}

using Reader = void (*)(Collector&);

const std::map<std::string, Reader, std::less<>>& readers() {
  static const std::map<std::string, Reader, std::less<>> known = {
      {"llama", read_llama},         {"qwen2", read_qwen2},          {"qwen3", read_qwen3},
      {"qwen3_moe", read_qwen3_moe}, {"deepseek_v3", read_deepseek}, {"kimi_k2", read_deepseek},
  };
  return known;
}

Model read_file(const Json& file, std::string name) {
  if (!file.is_object()) refuse(Code::invalid_argument, "the file must have an object");
  const ConfigFile config(file);
  const auto reader = kv::reader_of(config, readers());
  Collector collector(config);
  reader(collector);
  add_ends(collector);
  config.refuse_unasked(changing, "the weights");
  collector.model.name = std::move(name);
  return std::move(collector.model);
}

}  // namespace

Result<Model> from_config(std::string_view json, std::string name) {
  try {
    return read_file(Json::parse(kv::without_python_numbers(json)), std::move(name));
  } catch (const kv::Refused& refused) {
    return fail(refused.code, fmt::format("The config.json can't be used: {}.", refused.what()));
  } catch (const Json::exception& error) {
    return fail(Code::invalid_argument,
                fmt::format("The config.json can't be read: {}.", error.what()));
  }
}

}  // namespace weft::weights
