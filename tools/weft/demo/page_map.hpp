// Where each vector of a cache lies. Written from the description of the layouts and not from the
// code of kv::plan, so that the one checks the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>
#include <weft/kv.hpp>

#include "demo/block_allocator.hpp"

namespace weft::tool {

/// One head's key, value or latent of one token in one layer: the unit that is filled and checked.
struct Vector {
  std::uint32_t layer = 0;  ///< Of the model.
  std::uint32_t part = 0;   ///< 0: keys or latents, 1: values.
  std::uint64_t token = 0;  ///< Of the request.
  std::uint32_t head = 0;   ///< Of the model, before tensor parallelism.
};

/// A contiguous cache with one region per group.
class PageMap {
 public:
  explicit PageMap(const kv::Cache& cache);

  /// Bytes of a vector in a group.
  std::uint64_t vector_bytes(std::size_t group) const noexcept { return groups_[group].vector; }

  /// Contiguous bytes of one part of one layer in one block.
  std::uint64_t page_bytes(std::size_t group) const noexcept {
    const Strides& at = groups_[group];
    return at.vector * at.heads * at.tokens;
  }

  /// Calls `visit(group, Vector, offset)` for all that the blocks of a request have room for, in
  /// `layers`; tokens beyond the request's own included. A stop ends it early.
  template <typename Visit>
  void each(const BlockTable& table, kv::LayerRange layers, const std::stop_token& stop,
            Visit&& visit) const {
    each_page(table, layers, stop, [&](std::size_t group, Vector first, std::uint64_t offset) {
      each_in_page(group, first, offset, visit);
    });
  }
  /// Likewise for whole pages, with the first vector of each.
  template <typename Visit>
  void each_page(const BlockTable& table, kv::LayerRange layers, const std::stop_token& stop,
                 Visit&& visit) const {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Strides& at = groups_[g];
      for (std::size_t layer = 0; layer < at.layers.size(); ++layer) {
        if (at.layers[layer] < layers.first || at.layers[layer] >= layers.first + layers.count)
          continue;
        for (std::uint32_t part = 0; part < at.parts; ++part)
          for (std::size_t i = 0; i < table[g].size() && !stop.stop_requested(); ++i) {
            const std::uint64_t page =
                at.base + layer * at.layer + part * at.part + table[g][i] * at.block;
            visit(g, Vector{at.layers[layer], part, i * at.tokens, 0}, page);
          }
      }
    }
  }

 private:
  struct Strides {
    std::vector<std::uint32_t> layers;
    std::uint64_t base = 0, layer = 0, part = 0, block = 0, token = 0, head = 0, vector = 0;
    std::uint32_t parts = 0, tokens = 0, first_head = 0, heads = 0;
  };
  static Strides strides(const kv::Group& group, kv::HeadRange heads, std::uint64_t base);

  template <typename Visit>
  void each_in_page(std::size_t group, Vector first, std::uint64_t page, Visit& visit) const {
    const Strides& at = groups_[group];
    for (std::uint32_t token = 0; token < at.tokens; ++token)
      for (std::uint32_t head = 0; head < at.heads; ++head)
        visit(group, Vector{first.layer, first.part, first.token + token, at.first_head + head},
              page + token * at.token + head * at.head);
  }

  std::vector<Strides> groups_;
};

}  // namespace weft::tool
