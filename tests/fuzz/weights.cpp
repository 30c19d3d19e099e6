// Files with ranks and their shards, and plans of what they describe.
#include <weft/weights_plan.hpp>

#include "target.hpp"

using namespace weft;

namespace {

/// A plan of few bytes: a file of a line may describe more than memory holds.
bool is_small(const weights::World& world) {
  constexpr std::uint64_t most = 4096;
  std::uint64_t bytes = 0;
  for (const auto* side : {&world.publishers, &world.subscribers})
    for (const weights::Rank& rank : *side)
      for (const weights::Shard& shard : rank.shards) {
        std::uint64_t elements = 8;
        for (const std::uint64_t each : shard.extent)
          if (each > most || (elements *= each) > most) return false;
        if ((bytes += elements) > most) return false;
      }
  return true;
}

void check(const weights::World& world, const weights::Plan& plan) {
  std::uint64_t bytes = 0;
  for (const weights::Transfer& transfer : plan.transfers)
    for (const weights::Piece& piece : transfer.pieces) bytes += piece.length * piece.count;
  fuzz::require(bytes == plan.bytes, "the pieces are not all bytes");
  std::uint64_t wanted = 0;
  for (const weights::Rank& rank : world.subscribers)
    for (const weights::Shard& shard : rank.shards) {
      std::uint64_t elements = weights::bytes_of(shard.dtype);
      for (const std::uint64_t each : shard.extent) elements *= each;
      wanted += elements;
    }
  fuzz::require(bytes == wanted, "subscribers do not get what they want");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto world = weights::world_from_json(fuzz::text_of(data, size));
  if (!world) {
    fuzz::require(world.error().code() == Code::invalid_argument, "an error of another kind");
    return 0;
  }
  const auto again = weights::world_from_json(weights::to_json(*world));
  fuzz::require(again && weights::to_json(*again) == weights::to_json(*world),
                "a world is another one when it is read again");
  if (!is_small(*world)) return 0;
  for (const auto fan_out : {weights::FanOut::direct, weights::FanOut::chain})
    if (const auto plan = weights::plan(*world, {.fan_out = fan_out, .chunk_bytes = 64}))
      check(*world, *plan);
    else
      fuzz::require(plan.error().code() == Code::invalid_argument, "an error of another kind");
  return 0;
}
