// How each slice that subscribers want gets to them.
#pragma once

#include <vector>
#include <weft/weights_plan.hpp>

#include "weights/plan/catalog.hpp"
#include "weights/plan/loads.hpp"
#include "weights/plan/sweep.hpp"
#include "weights/plan/transfers.hpp"

namespace weft::weights {

class Router {
 public:
  /// Refers to the world and the catalog. `fan_out` is direct or chain.
  Router(const World& world, const Catalog& catalog, const PlanOptions& options, FanOut fan_out);

  /// All transfers. Fails with `invalid_argument` if a byte has no publisher.
  Result<std::vector<Transfer>> route() &&;

 private:
  /// A part of a slice that subscribers want, on its way.
  struct Part {
    const Tensor& tensor;
    const Sweep& sources;
    const Box& box;
    std::uint64_t bytes;
    std::uint32_t chunk;
  };

  Result<void> add(const Tensor& tensor);
  Result<void> add(const Tensor& tensor, const Sweep& sources, const Slice& sink);
  Result<void> publish(const Part& part, Holder to);
  Result<void> chain(const Part& part, std::span<const Holder> ring);
  Result<void> copy(const TransferTable::Key& key, const Box& box, const Shard& src,
                    const Shard& dst);
  std::vector<Holder> ring_of(std::span<const Holder> replicas) const;
  std::uint32_t next_chunk(std::span<const Holder> receivers, std::uint64_t bytes);

  const World& world_;
  const Catalog& catalog_;
  const FanOut fan_out_;
  Loads loads_;
  TransferTable transfers_;
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t piece_count_ = 0;
  std::vector<std::uint64_t> received_;   // by subscriber: so far, of all that it will receive
  std::vector<std::uint64_t> published_;  // by subscriber: first in its rings
  std::vector<Piece> pieces_;             // of one copy; kept for its memory
};

}  // namespace weft::weights
