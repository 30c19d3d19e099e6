/// @file
/// The tensors of known kinds of models, and how trainers and inference engines deal them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/error.hpp>
#include <weft/export.hpp>
#include <weft/weights_plan.hpp>

namespace weft::weights {

/// A tensor of a model, under its name in the checkpoint.
struct ModelTensor {
  std::string name;
  DType dtype = DType::bf16;
  Dims shape;
  /// Of a pipeline stage. The embedding belongs to the first layer; the last norm and the head to
  /// the last one.
  std::uint32_t layer = 0;
  /// The dimension that tensor parallelism cuts; empty: every rank has all of it.
  std::optional<std::uint32_t> cut = {};
  /// What stays whole in that dimension, such as heads: their number. 0: rows are dealt out as they
  /// come, the last ranks have fewer.
  std::uint32_t units = 0;
  std::optional<std::uint32_t> expert = {};  ///< Its number, of those that tokens are routed to.
};

/// How the ranks of one side share a model. There are `replicas * pp * fsdp * dp * tp` ranks, tp
/// innermost.
struct Parallelism {
  std::uint32_t tp = 1;  ///< Tensor parallelism: heads, and rows or columns.
  std::uint32_t pp = 1;  ///< Pipeline stages; layers as kv::stage_layers() deals them out.
  /// Expert parallelism: divides fsdp * dp * tp. Each expert is whole on one rank of `ep`; the
  /// ranks beyond share it out by rows with fsdp, or else are replicas. 1: experts are cut by tp.
  std::uint32_t ep = 1;
  std::uint32_t fsdp = 1;      ///< Rows of what tp leaves, as torch.chunk deals them out.
  std::uint32_t dp = 1;        ///< Replicas of all but the experts, as of data-parallel attention.
  std::uint32_t replicas = 1;  ///< Of the whole.
};

/// "tp=8,ep=16,dp=2" with the names above, each at most once. Fails with `invalid_argument`.
WEFT_API Result<Parallelism> parse_parallelism(std::string_view text);

/// What ranks are called and which NICs they have.
struct RankOptions {
  Parallelism parallel = {};
  std::string name = "rank";  ///< The first is "rank0".
  std::string host = "host";  ///< Likewise.
  std::uint32_t ranks_per_host = 8;
  std::uint32_t nics = 4;  ///< Of each rank. 8 ranks and 32 NICs of 100 Gb/s are an AWS p5.
  double gbps = 100;       ///< Of each NIC.
};

/// The weights of a model.
struct WEFT_API Model {
  std::string name;
  std::uint32_t layers = 0;   ///< num_hidden_layers; draft layers apart.
  std::uint32_t experts = 0;  ///< In each layer that has some.
  std::vector<ModelTensor> tensors;

  /// Elements, without the scales of quantized tensors.
  std::uint64_t parameters() const noexcept;
  /// Bytes of all tensors.
  std::uint64_t bytes() const noexcept;
  /// The ranks of one side. In each, slices lie in segment 0, one behind another; ranks that run
  /// have their own places. Fails with `invalid_argument`, naming the tensor, if it can't be dealt
  /// out so.
  Result<std::vector<Rank>> ranks(const RankOptions& options) const;
};

/// The weights that a config.json of the Hugging Face hub describes, in the type that it says: for
/// the "model_type" llama, qwen2, qwen3, qwen3_moe, deepseek_v3 and kimi_k2. Of quantizations fp8
/// in blocks is known, with a float32 scale for each block.
///
/// Nothing is guessed: fails with `unsupported` for other models, and for keys that change weights
/// in a way that is not known; and with `invalid_argument` if a number is missing or wrong.
WEFT_API Result<Model> from_config(std::string_view json, std::string name = {});

}  // namespace weft::weights
