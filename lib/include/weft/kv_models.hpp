/// @file
/// Known models' KV shapes, from their published configurations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/kv.hpp>

namespace weft::kv {

/// Layers of a model that keep the same, and share a block table.
struct Kind {
  std::string name;                   ///< "attention", "window", "latent", "index" or "state".
  std::vector<std::uint32_t> layers;  ///< Ascending, from 0.
  std::vector<Field> fields;          ///< Attention and latents in bf16.
  std::uint32_t window = 0;           ///< As Group::window.
  bool state = false;                 ///< One for each request.
};

/// The parts of a layout that the serving engine chooses.
struct LayoutOptions {
  DType dtype = DType::bf16;  ///< Of attention and latents; indices and states have their own.
  std::uint32_t tokens_per_block = 16;
  std::uint32_t blocks = 0;        ///< In each group.
  std::uint32_t state_blocks = 0;  ///< In each group of states; 0: as many as `blocks`.
  Parallel parallel = {};
  std::optional<LayerRange> layers = {};   ///< Of this pipeline stage; empty: all.
  Placement placement = Placement::split;  ///< Index pages are always fused.
  Order order = Order::layer_major;
  HeadOrder head_order = HeadOrder::nhd;
  /// Where placement allows no region per field, one per layer or one.
  Regions regions = Regions::one;
  std::uint64_t block_padding = 0;
  std::uint64_t block_alignment = 1;
};

/// A model's KV shape.
struct WEFT_API Model {
  std::string name;          ///< E.g. "Llama-3.1-8B".
  std::string id;            ///< On the Hugging Face hub, e.g. "meta-llama/Llama-3.1-8B".
  std::uint32_t layers = 0;  ///< num_hidden_layers; draft layers (num_nextn_predict_layers) apart.
  std::vector<Kind> kinds;

  /// The layout of one rank: a group for each kind with layers in `options.layers`, in the order of
  /// `kinds`. Fails with invalid_argument as Layout::create does, or if there are no such layers.
  Result<Layout> layout(const LayoutOptions& options) const;
  /// Bytes of one token in all layers of the whole model, without regard to windows.
  std::uint64_t bytes_per_token(DType dtype) const noexcept;
  /// Bytes of one request's states in all layers of the whole model.
  std::uint64_t state_bytes() const noexcept;
  /// Bytes of a request of `tokens` tokens in the whole model: windows cut, states included.
  std::uint64_t request_bytes(std::uint64_t tokens, DType dtype) const noexcept;
};

/// All known models.
WEFT_API std::span<const Model> models() noexcept;

/// The model of that name or id, in any case of letters. Fails with `not_found`, and lists the
/// names.
WEFT_API Result<Model> find_model(std::string_view name);

/// The shape that a config.json of the Hugging Face hub describes. `name` is the model's.
///
/// Nothing is guessed: fails with `unsupported`, naming the key, if the file has a `model_type`
/// that is unknown, or a key that changes a cache in a way that is not known of such models; and
/// with `invalid_argument` if a number is missing or wrong. States have the type that the file
/// says, else bf16, as servers do.
WEFT_API Result<Model> from_config(std::string_view json, std::string name = {});

/// How a serving engine lays attention out, as read in the version that `read_in` names. A newer
/// one may do otherwise: compare the strides of a tensor.
struct ServerLayout {
  std::string_view name;     ///< E.g. "vllm-flashinfer-hnd".
  std::string_view read_in;  ///< E.g. "vLLM 0.13.0, flashinfer.py".
  Placement placement;
  Order order;
  HeadOrder head_order;
  Regions regions;
};

/// All known ones.
WEFT_API std::span<const ServerLayout> server_layouts() noexcept;

/// `options` with the layout of the server of that name. Fails with `not_found`, and lists the
/// names.
WEFT_API Result<LayoutOptions> with_server(std::string_view name, LayoutOptions options = {});

/// The layers of a pipeline stage, as vLLM deals them out: equal numbers, and what is left over one
/// each to the stages before the last. `pp.rank` is less than `pp.size`.
WEFT_API LayerRange stage_layers(std::uint32_t layers, Share pp) noexcept;

}  // namespace weft::kv
