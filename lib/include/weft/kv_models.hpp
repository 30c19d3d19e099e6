/// @file
/// Known models' KV shapes, from their published configurations.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/kv.hpp>

namespace weft::kv {

/// Element type of a cache.
enum class DType : std::uint8_t { bf16, fp8 };

/// Bytes of one element.
constexpr std::uint32_t element_size(DType dtype) noexcept {
  return dtype == DType::bf16 ? 2 : 1;
}

/// The KV data of a model's layers.
enum class Attention : std::uint8_t {
  full,         ///< Every layer keeps the keys and values of all tokens: one group.
  latent,       ///< Every layer keeps one latent vector per token (MLA): one group.
  alternating,  ///< Even layers look back on a window, odd ones on all tokens: two groups.
};

/// The parts of a layout that the serving engine chooses.
struct LayoutOptions {
  DType dtype = DType::bf16;
  std::uint32_t tokens_per_block = 16;
  std::uint32_t blocks = 0;  ///< In each group.
  TensorParallel tp = {};
  Parts parts = Parts::split;  ///< Ignored for latent models.
  Order order = Order::layer_major;
  HeadOrder head_order = HeadOrder::nhd;
  Regions regions = Regions::one;
  std::uint64_t block_padding = 0;
  std::uint64_t block_alignment = 1;
};

/// A model's KV shape. The strings live as long as the program.
struct Model {
  std::string_view name;        ///< E.g. "Llama-3.1-8B".
  std::string_view id;          ///< On the Hugging Face hub, e.g. "meta-llama/Llama-3.1-8B".
  std::uint32_t layers = 0;     ///< num_hidden_layers.
  std::uint32_t kv_heads = 0;   ///< num_key_value_heads; 1 for latents.
  std::uint32_t head_size = 0;  ///< head_dim; for latents kv_lora_rank + qk_rope_head_dim.
  Attention attention = Attention::full;
  std::uint32_t window = 0;  ///< sliding_window, where layers alternate; else 0.

  /// The layout of one rank. Alternating models have the windowed layers in group 0 and the others
  /// in group 1. Fails with invalid_argument as Layout::create does.
  WEFT_API Result<Layout> layout(const LayoutOptions& options) const;
  /// Bytes of one token in all layers of the whole model, without regard to windows.
  WEFT_API std::uint64_t bytes_per_token(DType dtype) const noexcept;
};

/// All known models.
WEFT_API std::span<const Model> models() noexcept;

/// The model of that name or id, in any case of letters. Fails with `not_found`, and lists the
/// names.
WEFT_API Result<Model> find_model(std::string_view name);

}  // namespace weft::kv
