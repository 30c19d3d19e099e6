// Plans of small worlds, and what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "memory.hpp"

namespace weft::weights {
namespace {

Shard rows(const char* name, std::uint64_t first, std::uint64_t count, std::uint64_t offset = 0) {
  return {.name = name,
          .shape = {64, 16},
          .begin = {first, 0},
          .extent = {count, 16},
          .offset = offset};
}

Rank rank(std::string name, std::vector<Shard> shards, std::string host = {}) {
  return {.name = std::move(name), .host = std::move(host), .shards = std::move(shards)};
}

/// `trainers` of equal rows, `replicas` that have all.
World fan(std::uint64_t trainers, std::uint64_t replicas) {
  World world;
  for (std::uint64_t t = 0; t < trainers; ++t)
    world.publishers.push_back(
        rank(fmt::format("t{}", t), {rows("w", t * 64 / trainers, 64 / trainers)}));
  for (std::uint64_t r = 0; r < replicas; ++r)
    world.subscribers.push_back(rank(fmt::format("r{}", r), {rows("w", 0, 64)}));
  return world;
}

void expect_refused(const World& world, std::initializer_list<std::string_view> words) {
  const auto made = plan(world);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::invalid_argument);
  for (const std::string_view word : words)
    EXPECT_NE(made.error().message().find(word), std::string::npos)
        << made.error().message() << " lacks " << word;
}

TEST(WeightsPlan, HalvesGoToOne) {
  const World world = fan(2, 1);
  const auto made = plan(world).value();
  EXPECT_EQ(made.fan_out, FanOut::direct);
  ASSERT_EQ(made.transfers.size(), 2U);
  const Piece second{.dst_offset = 1024, .length = 1024};
  EXPECT_EQ(made.transfers[1].pieces, std::vector<Piece>{second});
  EXPECT_EQ(made.bytes, 2048U);
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, ColumnsAreOneStridedPiece) {
  World world = fan(1, 1);
  world.subscribers[0].shards[0].begin = {0, 4};
  world.subscribers[0].shards[0].extent = {64, 4};
  const auto made = plan(world).value();
  const Piece expected{
      .src_offset = 8, .length = 8, .count = 64, .src_stride = 32, .dst_stride = 8};
  ASSERT_EQ(made.transfers.size(), 1U);
  EXPECT_EQ(made.transfers[0].pieces, std::vector<Piece>{expected});
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, NeighboursAreJoined) {
  World world;
  world.publishers = {rank("t", {rows("a", 0, 64, 0), rows("b", 0, 64, 2048)})};
  world.subscribers = {rank("r", {rows("b", 0, 64, 5048), rows("a", 0, 64, 3000)})};
  const auto made = plan(world).value();
  ASSERT_EQ(made.transfers.size(), 1U);
  EXPECT_EQ(made.transfers[0].pieces, (std::vector<Piece>{{.dst_offset = 3000, .length = 4096}}));
}

TEST(WeightsPlan, AFusedParameterIsSeveralShards) {
  World world;
  world.publishers = {rank("t", {rows("gate", 0, 64, 0), rows("up", 0, 64, 2048)})};
  // Rows of gate and up lie beside one another.
  world.subscribers = {rank("r", {rows("gate", 0, 64, 0), rows("up", 0, 64, 32)})};
  for (Shard& shard : world.subscribers[0].shards) shard.strides = {64, 2};
  const auto made = plan(world).value();
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, ReplicasOfAPublisherShareTheLoad) {
  World world;
  for (int t = 0; t < 4; ++t) world.publishers.push_back(rank(fmt::format("t{}", t), {}));
  for (int w = 0; w < 64; ++w)
    for (Rank& each : world.publishers)
      each.shards.push_back(rows(fmt::format("w{}", w).c_str(), 0, 64, w * 2048U));
  world.publishers[3].nics = 2;
  world.subscribers = {rank("r", world.publishers[0].shards)};
  const auto made = plan(world).value();
  // A share by NICs is 1/5 of 128 KiB; a tensor is 2 KiB.
  for (const Load& load : made.publishers)
    EXPECT_LE(load.sent_by_nic, std::uint64_t{64} * 2048 / 5 + 2048);
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, OneLargeTensorIsSharedByReplicas) {
  World world = fan(1, 1);
  for (int t = 1; t < 4; ++t)
    world.publishers.push_back(rank(fmt::format("t{}", t), world.publishers[0].shards));
  const auto made = plan(world, {.chunk_bytes = 1024}).value();
  for (const Load& load : made.publishers) EXPECT_EQ(load.sent, 512U);
}

TEST(WeightsPlan, APublisherOfTheHostIsPreferred) {
  World world = fan(1, 2);
  world.publishers = {rank("a", world.publishers[0].shards, "one"),
                      rank("b", world.publishers[0].shards, "two")};
  world.subscribers[0].host = "two";
  const auto made = plan(world, {.fan_out = FanOut::direct}).value();
  EXPECT_EQ(made.publishers[1].sent_on_host, 2048U);
  EXPECT_EQ(made.subscribers[0].received_on_host, 2048U);
  EXPECT_EQ(made.publishers[0].sent + made.publishers[1].sent, 2048U);
}

TEST(WeightsPlan, AChainSendsEachByteOnceAndStartsAtAllReplicas) {
  const World world = fan(2, 4);
  const auto made =
      plan(world, {.fan_out = FanOut::chain, .chunk_bytes = 1024, .chain_from_bytes = 0}).value();
  EXPECT_EQ(made.published, 2048U);
  EXPECT_EQ(made.hops, 4U);
  EXPECT_EQ(made.chunks, 2U);
  EXPECT_EQ(test::carry(world, made), "");
  for (std::uint32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(made.subscribers[r].sent, 2048U * 3 / 4);
    EXPECT_EQ(made.subscribers[r].received, 2048U);
  }
}

TEST(WeightsPlan, SmallSlicesAreNotPassedOn) {
  const auto made = plan(fan(1, 4), {.fan_out = FanOut::chain}).value();
  EXPECT_EQ(made.hops, 1U);
  EXPECT_EQ(made.published, 4 * 2048U);
}

TEST(WeightsPlan, ARingVisitsHostAfterHost) {
  World world = fan(1, 4);
  for (int r = 0; r < 4; ++r) world.subscribers[r].host = r % 2 == 0 ? "even" : "odd";
  const auto made = plan(world, {.fan_out = FanOut::chain, .chain_from_bytes = 0}).value();
  std::uint64_t between_hosts = 0;
  for (const Load& load : made.subscribers) between_hosts += load.sent;
  // Of three steps from replica to replica one or two leave the host.
  EXPECT_LE(between_hosts, 2 * 2048U);
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, AutomaticTakesTheFaster) {
  const PlanOptions options{.chunk_bytes = 256, .chain_from_bytes = 0, .seconds_per_transfer = 0};
  // One trainer with one NIC: its NIC is the narrow place.
  EXPECT_EQ(plan(fan(1, 8), options).value().fan_out, FanOut::chain);
  // As many trainers as replicas: each replica's own NIC is.
  EXPECT_EQ(plan(fan(8, 2), options).value().fan_out, FanOut::direct);
  EXPECT_EQ(plan(fan(2, 1), options).value().fan_out, FanOut::direct);
}

TEST(WeightsPlan, ThePredictionIsThatOfTheNarrowestPlace) {
  // 2 KiB leave each NIC of 1 byte in a nanosecond.
  World world = fan(1, 2);
  for (auto* side : {&world.publishers, &world.subscribers})
    for (Rank& each : *side) each.gbps = 8;
  const PlanOptions direct{.fan_out = FanOut::direct, .seconds_per_transfer = 0};
  EXPECT_NEAR(plan(world, direct).value().predicted_seconds, 4096e-9, 1e-12);
  world.publishers[0].nics = 2;
  EXPECT_NEAR(plan(world, direct).value().predicted_seconds, 2048e-9, 1e-12);
  const PlanOptions late{.fan_out = FanOut::direct, .seconds_per_transfer = 1};
  EXPECT_NEAR(plan(world, late).value().predicted_seconds, 1, 0.1);
}

TEST(WeightsPlan, ScalarsAndEmptyWorlds) {
  EXPECT_TRUE(plan({}).value().transfers.empty());
  World world;
  world.publishers = {rank("t", {{.name = "step", .dtype = DType::int64}})};
  world.subscribers = {rank("r", {{.name = "step", .dtype = DType::int64, .offset = 3}})};
  const auto made = plan(world).value();
  EXPECT_EQ(made.bytes, 8U);
  EXPECT_EQ(test::carry(world, made), "");
}

TEST(WeightsPlan, MissingTensorsAreRefused) {
  World world = fan(1, 1);
  world.subscribers[0].shards.push_back(rows("bias", 0, 64, 4096));
  expect_refused(world, {"r0", "bias", "no publisher"});
}

TEST(WeightsPlan, MissingBytesAreRefused) {
  World world = fan(2, 1);
  world.publishers.pop_back();
  expect_refused(world, {"r0", "tensor w", "[0:64, 0:16]"});
}

TEST(WeightsPlan, OverlappingClaimsAreRefused) {
  World world = fan(2, 1);
  world.publishers[1].shards[0] = rows("w", 16, 48);
  expect_refused(world, {"t0", "t1", "tensor w", "[0:32, 0:16]", "[16:64, 0:16]"});
}

TEST(WeightsPlan, OtherTypesAndShapesAreRefused) {
  World world = fan(2, 1);
  world.subscribers[0].shards[0].dtype = DType::fp32;
  expect_refused(world, {"w", "float32", "bfloat16", "r0", "t0"});
  world = fan(2, 1);
  world.publishers[1].shards[0].shape = {64, 17};
  expect_refused(world, {"t1", "w", "(64, 17)", "(64, 16)"});
}

TEST(WeightsPlan, SlicesBeyondTheTensorAreRefused) {
  World world = fan(1, 1);
  world.subscribers[0].shards[0].begin = {1, 0};
  expect_refused(world, {"r0", "w", "beyond", "dimension 0"});
  world.subscribers[0].shards[0].extent = {0, 16};
  expect_refused(world, {"empty"});
  world.subscribers[0].shards[0].extent = {16};
  expect_refused(world, {"2 dimensions"});
  world = fan(1, 1);
  world.subscribers[0].shards[0].shape = {1, 1, 1, 1, 1, 1, 1};
  expect_refused(world, {"7 dimensions"});
}

TEST(WeightsPlan, HugeNumbersAreRefused) {
  World world = fan(1, 1);
  world.subscribers[0].shards[0].offset = ~std::uint64_t{0};
  expect_refused(world, {"beyond any segment"});
  world = fan(1, 1);
  world.publishers[0].shards[0].shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  expect_refused(world, {"larger than any memory"});
  world = fan(1, 1);
  world.publishers[0].shards[0].strides = {std::uint64_t{1} << 63, 2};
  expect_refused(world, {"beyond any segment"});
}

TEST(WeightsPlan, OverlappingMemoryIsRefused) {
  World world;
  world.publishers = {rank("t", {rows("a", 0, 64), rows("b", 0, 64)})};
  world.subscribers = {rank("r", {rows("a", 0, 64), rows("b", 0, 64, 2046)})};
  expect_refused(world, {"r: tensor a", "overlaps b in memory"});
  world.subscribers[0].shards[1].segment = 1;
  EXPECT_TRUE(plan(world));
  world.subscribers[0].shards[0].strides = {32, 0};
  expect_refused(world, {"let elements overlap"});
}

TEST(WeightsPlan, BadRanksAndOptionsAreRefused) {
  World world = fan(2, 1);
  world.publishers[1].name = "t0";
  expect_refused(world, {"t0", "two publishers"});
  world = fan(2, 1);
  world.publishers[1].nics = 0;
  expect_refused(world, {"t1", "NICs"});
  EXPECT_FALSE(plan(fan(1, 1), {.chunk_bytes = 0}));
  EXPECT_FALSE(plan(fan(1, 1), {.host_gbps = 0}));
}

TEST(WeightsJson, MinimalAndWrongFiles) {
  const auto read = world_from_json(
      R"({"publishers":[{"name":"t","shards":[{"name":"w","dtype":"float32","shape":[4,2]}]}]})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->publishers[0].shards[0].extent, (Dims{4, 2}));
  EXPECT_EQ(read->publishers[0].shards[0].begin, (Dims{0, 0}));
  for (
      const char* text : {
          "",
          "[]",
          "{\"publisher\":[]}",
          "{\"publishers\":{}}",
          "{\"publishers\":[{}]}",
          R"({"publishers":[{"name":"t","nics":-1}]})",
          R"({"publishers":[{"name":"t","gbps":"1"}]})",
          R"({"publishers":[{"name":"t","shards":[{"name":"w","dtype":"float31","shape":[]}]}]})",
          R"({"publishers":[{"name":"t","shards":[{"name":"w","dtype":"bool","shape":[1.5]}]}]})",
          R"({"publishers":[{"name":"t","shards":[{"name":"w","dtype":"bool","shape":[1],"begin":[0]}]}]})",
          R"({"publishers":[{"name":"t","shards":[{"name":"w","dtype":"bool","shape":[1,1,1,1,1,1,1]}]}]})",
      })
    EXPECT_FALSE(world_from_json(text)) << text;
  const auto wrong = world_from_json(
      R"({"publishers":[],"subscribers":[{"name":"t","shards":[{"name":"w","dtype":"bool"}]}]})");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message().find("subscribers[0].shards[0] lacks \"shape\""),
            std::string::npos);
}

}  // namespace
}  // namespace weft::weights
