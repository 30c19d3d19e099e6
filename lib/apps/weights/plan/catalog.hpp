// All tensors of a world: who has which slice of them, and who wants which.
#pragma once

#include <span>
#include <vector>
#include <weft/weights_plan.hpp>

#include "weights/plan/box.hpp"

namespace weft::weights {

/// A rank's shard, by index.
struct Holder {
  std::uint32_t rank = 0;
  std::uint32_t shard = 0;
};

/// A slice, and the ranks that hold it: several are replicas. Ordered by rank.
struct Slice {
  Box box;
  std::span<const Holder> holders;
};

struct Tensor {
  const Shard* sample = nullptr;   ///< Any of its shards: name, type and shape.
  std::span<const Slice> sources;  ///< Ordered by box; apart from each other.
  std::span<const Slice> sinks;    ///< Ordered by box; may overlap.
};

/// Refers to the world, which has to live as long.
class Catalog {
 public:
  /// Checks each shard, and that all agree. Fails with `invalid_argument`.
  static Result<Catalog> of(const World& world);

  /// Those that subscribers want, in the order in which they name them first.
  std::span<const Tensor> tensors() const noexcept { return tensors_; }

 private:
  std::vector<Holder> holders_;
  std::vector<Slice> slices_;
  std::vector<Tensor> tensors_;
};

}  // namespace weft::weights
