// Where each vector of a cache lies. Written from the description of the layouts and not from the
// code of kv::plan, so that the one checks the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>
#include <weft/kv.hpp>

#include "demo/block_allocator.hpp"

namespace weft::tool {

/// One head's vector in one row of a field in one layer: the unit that is filled and checked.
struct Vector {
  std::uint32_t layer = 0;  ///< Of the model.
  std::size_t field = 0;    ///< Within its group.
  std::uint64_t row = 0;    ///< Of the request.
  std::uint32_t head = 0;   ///< Of the model, before tensor parallelism.
};

/// A contiguous cache with one region per group.
class PageMap {
 public:
  explicit PageMap(const kv::Cache& cache);

  /// Where a field of a group lies.
  struct Field {
    std::string name;
    std::uint64_t code = 0;    ///< Of the name: the same on both sides.
    std::uint64_t vector = 0;  ///< Bytes.
    std::uint64_t offset = 0, layer = 0, block = 0, row = 0, head = 0;
    std::uint32_t rows = 0;            ///< Of a block.
    std::uint32_t tokens_per_row = 0;  ///< 0: rows of a state.
    std::uint32_t first_head = 0, heads = 0;
    bool apart = false;  ///< Nothing lies between its rows.
  };
  const Field& field(std::size_t group, const Vector& vector) const noexcept {
    return groups_[group].fields[vector.field];
  }

  /// Calls `visit(group, Vector, offset)` for all that the blocks of a request have room for, in
  /// `layers`; tokens beyond the request's own included. A stop ends it early.
  template <typename Visit>
  void each(const BlockTable& table, kv::LayerRange layers, const std::stop_token& stop,
            Visit&& visit) const {
    each_stretch(
        table, layers, stop,
        [&](std::size_t group, Vector first, std::uint64_t offset, std::uint32_t rows) {
          const Field& at = field(group, first);
          for (std::uint32_t row = 0; row < rows; ++row)
            for (std::uint32_t head = 0; head < at.heads; ++head)
              visit(group, Vector{first.layer, first.field, first.row + row, at.first_head + head},
                    offset + row * at.row + head * at.head);
        });
  }
  /// Likewise for contiguous rows: whole pages, or single rows where another field lies beside.
  /// Calls `visit(group, first Vector, offset, rows)`.
  template <typename Visit>
  void each_stretch(const BlockTable& table, kv::LayerRange layers, const std::stop_token& stop,
                    Visit&& visit) const {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (std::size_t f = 0; f < groups_[g].fields.size(); ++f) {
        const Field& at = groups_[g].fields[f];
        for (std::size_t layer = 0; layer < groups_[g].layers.size(); ++layer) {
          const std::uint32_t number = groups_[g].layers[layer];
          if (number < layers.first || number - layers.first >= layers.count) continue;
          for (std::size_t i = 0; i < table[g].size() && !stop.stop_requested(); ++i) {
            const std::uint64_t page = at.offset + layer * at.layer + table[g][i] * at.block;
            const std::uint32_t step = at.apart ? at.rows : 1;
            for (std::uint32_t row = 0; row < at.rows; row += step)
              visit(g, Vector{number, f, i * at.rows + row, at.first_head}, page + row * at.row,
                    step);
          }
        }
      }
  }

 private:
  struct Group {
    std::vector<std::uint32_t> layers;
    std::vector<Field> fields;
  };
  static Group place(const kv::Layout& layout, std::size_t index, std::uint64_t base);

  std::vector<Group> groups_;
};

}  // namespace weft::tool
