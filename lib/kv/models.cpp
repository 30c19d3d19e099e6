#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <weft/kv_models.hpp>

namespace weft::kv {

namespace {

// Source: the config.json that each model publishes under its id on the Hugging Face hub, as quoted
// by public tools that carry copies of those files; at least two of them agree on every number.
//
// The latent vector of DeepSeek is kv_lora_rank 512 + qk_rope_head_dim 64 elements. Its config says
// num_key_value_heads 128, but with MLA these are computed from the latent and never cached. Its
// extra multi-token-prediction layer (num_nextn_predict_layers 1) is not counted.
// Llama's config.json has no head_dim: hidden_size / num_attention_heads = 4096/32, 8192/64,
// 16384/128, that is 128 in all three.
// GPT-OSS's layer_types begin with sliding_attention and alternate.
constexpr std::array<Model, 10> known = {{
    {"Llama-3.1-8B", "meta-llama/Llama-3.1-8B", 32, 8, 128, Attention::full, 0},
    {"Llama-3.1-70B", "meta-llama/Llama-3.1-70B", 80, 8, 128, Attention::full, 0},
    {"Llama-3.1-405B", "meta-llama/Llama-3.1-405B", 126, 8, 128, Attention::full, 0},
    {"Qwen3-8B", "Qwen/Qwen3-8B", 36, 8, 128, Attention::full, 0},
    {"Qwen3-32B", "Qwen/Qwen3-32B", 64, 8, 128, Attention::full, 0},
    {"Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B", 94, 4, 128, Attention::full, 0},
    {"DeepSeek-V3", "deepseek-ai/DeepSeek-V3", 61, 1, 512 + 64, Attention::latent, 0},
    {"DeepSeek-R1", "deepseek-ai/DeepSeek-R1", 61, 1, 512 + 64, Attention::latent, 0},
    {"GPT-OSS-20B", "openai/gpt-oss-20b", 24, 8, 64, Attention::alternating, 128},
    {"GPT-OSS-120B", "openai/gpt-oss-120b", 36, 8, 64, Attention::alternating, 128},
}};

bool same_letters(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::uint32_t> every(std::uint32_t step, std::uint32_t first, std::uint32_t layers) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t layer = first; layer < layers; layer += step) numbers.push_back(layer);
  return numbers;
}

}  // namespace

std::span<const Model> models() noexcept {
  return known;
}

Result<Model> find_model(std::string_view name) {
  const auto it = std::find_if(known.begin(), known.end(), [&](const Model& model) {
    return same_letters(model.name, name) || same_letters(model.id, name);
  });
  if (it != known.end()) return *it;
  std::vector<std::string_view> names;
  for (const Model& model : known) names.push_back(model.name);
  return fail(Code::not_found,
              fmt::format("No model \"{}\" is known; there are {}.", name, fmt::join(names, ", ")));
}

Result<Layout> Model::layout(const LayoutOptions& options) const {
  Group group;
  group.blocks = options.blocks;
  group.tokens_per_block = options.tokens_per_block;
  group.kv_heads = kv_heads;
  group.head_size = head_size;
  group.element_size = element_size(options.dtype);
  group.parts = attention == Attention::latent ? Parts::latent : options.parts;
  group.order = options.order;
  group.head_order = options.head_order;
  group.regions = options.regions;
  group.block_padding = options.block_padding;
  group.block_alignment = options.block_alignment;
  if (attention != Attention::alternating) {
    group.layers = every(1, 0, layers);
    return Layout::create({std::move(group)}, options.tp);
  }
  Group windowed = group;
  windowed.layers = every(2, 0, layers);
  windowed.window = window;
  group.layers = every(2, 1, layers);
  return Layout::create({std::move(windowed), std::move(group)}, options.tp);
}

std::uint64_t Model::bytes_per_token(DType dtype) const noexcept {
  const std::uint32_t parts = attention == Attention::latent ? 1 : 2;
  return std::uint64_t{layers} * parts * kv_heads * head_size * element_size(dtype);
}

}  // namespace weft::kv
