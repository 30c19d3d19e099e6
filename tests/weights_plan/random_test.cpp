// Random tensors, dealt out over ranks at random, and the plan carried through plain memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "memory.hpp"

namespace weft::weights {
namespace {

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed) {}

  World make() {
    World world;
    world.publishers = ranks("trainer", 1 + below(6));
    world.subscribers = ranks("worker", 1 + below(6));
    const std::uint64_t tensors = 1 + below(6);
    for (std::uint64_t t = 0; t < tensors; ++t) {
      Shard tensor;
      tensor.name = fmt::format("layer.{}.weight", t);
      tensor.dtype = static_cast<DType>(below(13));
      std::vector<std::uint64_t> shape(below(4));
      for (auto& each : shape) each = 1 + below(9);
      tensor.shape = Dims(shape);
      // Publishers' slices are the same or apart: one grid, each cell with a holder or several.
      for (const Shard& slice : grid(tensor)) give(slice, world.publishers, true);
      // Subscribers' may overlap between ranks.
      const std::uint64_t deals = 1 + below(2);
      for (std::uint64_t i = 0; i < deals; ++i)
        for (Rank& rank : world.subscribers) {
          const auto slices = grid(tensor);
          const Shard& slice = slices[below(slices.size())];
          const bool has = std::any_of(rank.shards.begin(), rank.shards.end(),
                                       [&](const Shard& s) { return s.name == slice.name; });
          if (!has && below(4) > 0) place(slice, rank);
        }
      if (below(2) == 0)
        for (const Shard& slice : grid(tensor)) give_new(slice, world.subscribers);
    }
    return world;
  }

  PlanOptions options() {
    PlanOptions options;
    options.fan_out = static_cast<FanOut>(below(3));
    options.chunk_bytes = 1 + below(200);
    options.chain_from_bytes = below(2) * below(40);
    return options;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::vector<Rank> ranks(const char* name, std::uint64_t count) {
    std::vector<Rank> ranks;
    for (std::uint64_t i = 0; i < count; ++i) {
      Rank rank;
      rank.name = fmt::format("{}{}", name, i);
      if (below(2) == 0) rank.host = fmt::format("host{}", below(3));
      rank.nics = static_cast<std::uint32_t>(1 + below(4));
      ranks.push_back(rank);
    }
    return ranks;
  }

  /// Slices that are apart and make up the tensor.
  std::vector<Shard> grid(const Shard& tensor) {
    Shard whole = tensor;
    whole.begin = whole.extent = tensor.shape;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) whole.begin[d] = 0;
    std::vector<Shard> slices = {whole};
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (below(2) == 0) continue;
      const std::uint64_t at = below(tensor.shape[d]);  // uneven, and perhaps nothing on one side
      std::vector<Shard> parts;
      for (const Shard& slice : slices)
        for (const bool low : {true, false}) {
          Shard part = slice;
          part.begin[d] = low ? 0 : at;
          part.extent[d] = low ? at : tensor.shape[d] - at;
          if (part.extent[d] > 0) parts.push_back(part);
        }
      slices = parts;
    }
    return slices;
  }

  void give(const Shard& slice, std::vector<Rank>& ranks, bool replicas) {
    const std::uint64_t first = below(ranks.size());
    place(slice, ranks[first]);
    for (std::uint64_t r = 0; replicas && r < ranks.size(); ++r)
      if (r != first && below(3) == 0) place(slice, ranks[r]);
  }
  void give_new(const Shard& slice, std::vector<Rank>& ranks) {
    Shard other = slice;
    place(other, ranks[below(ranks.size())]);
  }

  /// Behind all that the segment has, dense or with gaps, and perhaps with its dimensions swapped.
  void place(Shard shard, Rank& rank) {
    shard.segment = static_cast<std::uint32_t>(below(3));
    std::uint64_t& end = ends_[&rank][shard.segment];
    shard.offset = end + below(3);
    if (below(3) == 0 && !shard.shape.empty()) {
      std::vector<std::size_t> order(shard.shape.size());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
      std::shuffle(order.begin(), order.end(), random_);
      shard.strides = shard.shape;
      std::uint64_t stride = bytes_of(shard.dtype);
      for (const std::size_t d : order) {
        stride += below(3);
        shard.strides[d] = stride;
        stride *= shard.extent[d];
      }
      end = shard.offset + stride;
    } else {
      std::uint64_t bytes = bytes_of(shard.dtype);
      for (const std::uint64_t each : shard.extent) bytes *= each;
      end = shard.offset + bytes;
    }
    rank.shards.push_back(shard);
  }

  std::mt19937_64 random_;
  std::map<const Rank*, std::map<std::uint32_t, std::uint64_t>> ends_;
};

TEST(RandomWeights, EveryByteArrivesOnceFromTheRightPlace) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomWorld random(seed);
    const World world = random.make();
    const PlanOptions options = random.options();
    const auto made = plan(world, options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().to_string();
    ASSERT_EQ(test::carry(world, *made), "") << "seed " << seed;
    EXPECT_TRUE(options.fan_out == FanOut::automatic || made->fan_out == options.fan_out);
  }
}

TEST(RandomWeights, WorldsSurviveJson) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const World world = RandomWorld(seed).make();
    const auto read = world_from_json(to_json(world));
    ASSERT_TRUE(read) << read.error().to_string();
    ASSERT_EQ(to_json(*read), to_json(world));
  }
}

TEST(RandomWeights, AMissingByteIsAlwaysToldOf) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomWorld random(seed);
    World world = random.make();
    const PlanOptions options = random.options();
    // One slice is lost, with all its replicas.
    const Shard lost = world.publishers[0].shards.empty() ? Shard{} : world.publishers[0].shards[0];
    for (Rank& rank : world.publishers)
      std::erase_if(rank.shards, [&](const Shard& shard) {
        return shard.name == lost.name && shard.begin == lost.begin;
      });
    const auto made = plan(world, options);
    if (made) {
      ASSERT_EQ(test::carry(world, *made), "") << "seed " << seed;
      continue;
    }
    ++refused;
    ASSERT_EQ(made.error().code(), Code::invalid_argument);
    ASSERT_NE(made.error().message().find(lost.name), std::string::npos);
  }
  EXPECT_GT(refused, 100U);
}

}  // namespace
}  // namespace weft::weights
