// Where the bytes of operations lie, and how a wrong one is found.
#include "workload/workload.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "workload/file_memory.hpp"

namespace weft::perf {
namespace {

using testing::HasSubstr;

struct Sides {
  std::vector<std::byte> initiator, target;
};

Sides filled(const Work& work, const Workload& load, std::uint64_t seed) {
  Sides sides{std::vector<std::byte>(load.initiator_bytes),
              std::vector<std::byte>(load.target_bytes)};
  fill(sides.initiator, before(work, load, Side::initiator, seed));
  fill(sides.target, before(work, load, Side::target, seed));
  return sides;
}

/// What the transfers would do.
void move_all(const Work& work, const Workload& load, Sides& sides) {
  for (std::size_t transfer = 0; transfer + 1 < load.first.size(); ++transfer) {
    const bool read = reads(work, static_cast<std::uint32_t>(transfer / load.parts));
    for (std::uint32_t i = load.first[transfer]; i < load.first[transfer + 1]; ++i) {
      const Pair& pair = load.pairs[i];
      std::byte* local = sides.initiator.data() + pair.local;
      std::byte* remote = sides.target.data() + pair.remote;
      std::memcpy(read ? local : remote, read ? remote : local, pair.length);
    }
  }
}

std::uint64_t wrong_bytes(const Work& work, const Workload& load, const Sides& sides,
                          std::uint64_t seed) {
  return check(sides.initiator, after(work, load, Side::initiator, seed)).wrong +
         check(sides.target, after(work, load, Side::target, seed)).wrong;
}

Work work_of(Operation operation, Pattern pattern, std::uint32_t pieces) {
  Work work;
  work.operation = operation;
  work.size = 3000;
  work.pieces = pieces;
  work.pattern = pattern;
  work.window = 4;
  return work;
}

std::vector<Work> all_kinds() {
  std::vector<Work> kinds;
  for (const Operation operation :
       {Operation::write, Operation::read, Operation::signal, Operation::mixed})
    for (const Pattern pattern : {Pattern::contiguous, Pattern::strided, Pattern::random})
      for (const std::uint32_t pieces : {1U, 100U})
        kinds.push_back(work_of(operation, pattern, pieces));
  for (const Operation operation : {Operation::write, Operation::mixed}) {
    Work kv = work_of(operation, Pattern::contiguous, 1);
    kv.window = 2;
    kv.kv = {"gpt-oss-20b", "bf16", 40, 16, 5, 2, 1};
    kinds.push_back(kv);
  }
  const std::vector<Work> apart = kinds;
  for (Work work : apart) {
    work.one_buffer = true;
    if (work.operation != Operation::mixed) kinds.push_back(work);
  }
  return kinds;
}

TEST(Workload, EveryByteIsExpectedWhereItCame) {
  for (const Work& work : all_kinds()) {
    const auto load = lay_out(work);
    ASSERT_TRUE(load) << load.error().to_string();
    Sides sides = filled(work, *load, 5);
    EXPECT_GT(wrong_bytes(work, *load, sides, 5), 0U) << Json(work);
    move_all(work, *load, sides);
    EXPECT_EQ(wrong_bytes(work, *load, sides, 5), 0U) << Json(work);
    EXPECT_GT(wrong_bytes(work, *load, sides, 6), 0U) << Json(work);
    EXPECT_EQ(check(sides.target, after(work, *load, Side::target, 5)).checked, load->target_bytes);
  }
}

/// A single byte anywhere, moved or around, is found, and named.
TEST(Workload, AWrongByteIsFoundAnywhere) {
  for (const Work& work : all_kinds()) {
    const auto load = lay_out(work);
    ASSERT_TRUE(load);
    Sides sides = filled(work, *load, 1);
    move_all(work, *load, sides);
    const std::uint64_t step = load->target_bytes / 37 + 1;
    const auto wanted = after(work, *load, Side::target, 1);
    for (std::uint64_t at = 0; at < load->target_bytes; at += step) {
      sides.target[at] ^= std::byte{0x10};
      const Findings found = check(sides.target, wanted);
      EXPECT_EQ(found.wrong, 1U) << at;
      EXPECT_THAT(found.first, HasSubstr("byte " + std::to_string(at) + " ")) << at;
      sides.target[at] ^= std::byte{0x10};
    }
  }
}

/// However many are in flight: as much memory as one takes, and the same pieces for each.
TEST(Workload, OneBufferIsThatOfOneOperation) {
  for (Work work : all_kinds()) {
    if (!work.one_buffer) continue;
    const auto load = lay_out(work).value();
    for (std::uint32_t i = 0; i < work.window; ++i) EXPECT_EQ(first_transfer(work, load, i), 0U);
    EXPECT_EQ(load.first.size(), load.parts + 1U);
    work.window = 1;
    work.one_buffer = false;
    const auto alone = lay_out(work).value();
    EXPECT_EQ(load.target_bytes, alone.target_bytes) << Json(work);
    EXPECT_EQ(load.initiator_bytes, alone.initiator_bytes) << Json(work);
    EXPECT_EQ(load.pairs.size(), alone.pairs.size()) << Json(work);
    EXPECT_EQ(load.operation_bytes, alone.operation_bytes) << Json(work);
  }
  const Work work = work_of(Operation::write, Pattern::contiguous, 1);
  EXPECT_EQ(first_transfer(work, lay_out(work).value(), 3), 3U);
}

TEST(Workload, PatternsDifferInTheirPieces) {
  const auto strided = lay_out(work_of(Operation::write, Pattern::strided, 10)).value();
  const auto random = lay_out(work_of(Operation::write, Pattern::random, 10)).value();
  bool moved = false;
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(strided.pairs[i].local, i * 600);
    EXPECT_EQ(strided.pairs[i].remote, i * 600);
    moved = moved || random.pairs[i].local != random.pairs[i].remote;
  }
  EXPECT_TRUE(moved);
}

TEST(Workload, KvRequestHasAllOfTheCache) {
  Work work = work_of(Operation::write, Pattern::contiguous, 1);
  work.kv = {"Llama-3.1-8B", "bf16", 64, 16, 8, 1, 1};
  const auto load = lay_out(work).value();
  EXPECT_EQ(load.operation_bytes, 64U * 32 * 2 * 8 * 128 * 2);  // tokens, layers, K and V, heads...
  EXPECT_EQ(load.parts, 8U);
  EXPECT_EQ(load.first.size(), 8U * work.window + 1);
}

// Stage 0 of 2 holds 31 of 61 layers (vLLM's rule gives the rest to the stages before the last).
TEST(Workload, KvRequestOfAStageAndOfAHybrid) {
  Work work = work_of(Operation::write, Pattern::contiguous, 1);
  work.kv = {"DeepSeek-V3.2", "bf16", 64, 16, 8, 1, 1, 2, 1};
  EXPECT_EQ(lay_out(work)->operation_bytes, 64U * 31 * (576 * 2 + 132));
  work.kv = {"Nemotron-3-Nano", "bf16", 64, 16, 8, 1, 2};
  const std::uint64_t state = 23 * ((64 * 64 + 2 * 8 * 128) * 3 * 2 + 64 * 64 * 128 * 4) / 2;
  EXPECT_EQ(lay_out(work)->operation_bytes, 64U * 6 * 2 * 128 * 2 + state);
  work.kv.pp = 53;
  EXPECT_EQ(bytes_of_request(work.kv).error().code(), Code::invalid_argument);
}

/// A piece of a shuffled block is a page: none is longer, and all but the last block's are whole.
TEST(Workload, PagesOfAModelHaveTheBytesThatWereAskedFor) {
  struct Case {
    const char* model;
    std::uint32_t tokens;
    std::uint64_t page;
  };
  for (const Case each :
       {Case{"Llama-3.1-8B", 128, 256 << 10}, Case{"Qwen3-235B-A22B", 256, 256 << 10},
        Case{"DeepSeek-V3", 227, 227 * 576 * 2}}) {
    Work work;
    work.size = 1;
    work.kv = {each.model, "bf16", 0, 16, 8, 1, 1};
    work.kv.block_tokens = tokens_of_block(work.kv, 256 << 10).value();
    EXPECT_EQ(work.kv.block_tokens, each.tokens) << each.model;
    work.kv.tokens = 32 * each.tokens;
    const auto load = lay_out(work).value();
    std::uint64_t pages = 0;
    for (const Pair& pair : load.pairs) {
      EXPECT_EQ(pair.length % each.page, 0U);  // Two blocks may be neighbours on both sides.
      pages += pair.length / each.page;
    }
    EXPECT_EQ(pages * each.page, load.operation_bytes);
    EXPECT_GT(load.pairs.size(), pages * 9 / 10) << each.model;
  }
}

TEST(Workload, ABlockHasRoomForAToken) {
  const KvShape shape{"Llama-3.1-8B", "bf16", 1, 16, 1, 2, 1};
  EXPECT_EQ(tokens_of_block(shape, 1024).value(), 1U);  // 4 heads of 128 elements.
  EXPECT_EQ(tokens_of_block(shape, 1023).error().code(), Code::invalid_argument);
  EXPECT_FALSE(tokens_of_block({"nobody"}, 1 << 20));
}

/// Neighbours swapped, a shift by one, and another request's bytes are all wrong.
TEST(Pattern, DependsOnPositionAndSeed) {
  std::vector<std::byte> whole(4096), part(100);
  tool::pattern(9, 0, whole);
  for (const std::uint64_t from : {0, 1, 7, 8, 9, 1000, 3996}) {
    tool::pattern(9, from, part);
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + from, part.size()), 0) << from;
    tool::pattern(10, from, part);
    EXPECT_NE(std::memcmp(part.data(), whole.data() + from, part.size()), 0) << from;
  }
  for (std::size_t i = 8; i + 8 <= whole.size(); i += 8)
    EXPECT_NE(std::memcmp(whole.data(), whole.data() + i, 8), 0) << i;
}

TEST(Point, RefusesWhatCantBeMeasured) {
  const auto refused = [](const char* change) {
    Json json = Point{};
    json["work"]["size"] = 4096;
    EXPECT_TRUE(check(json.get<Point>()));
    json["work"].update(Json::parse(change));
    const auto checked = check(json.get<Point>());
    ASSERT_FALSE(checked) << change;
    EXPECT_EQ(checked.error().code(), Code::invalid_argument);
  };
  refused(R"({"size": 0})");
  refused(R"({"size": 4097, "pieces": 2})");
  refused(R"({"pieces": 0})");
  refused(R"({"pieces": 8192})");
  refused(R"({"window": 0})");
  refused(R"({"window": 100000})");
  refused(R"({"batch": 0})");
  refused(R"({"batch": 2})");
  refused(R"({"operation": "mixed"})");
  refused(R"({"operation": "message", "size": 2000000})");
  refused(R"({"operation": "message", "pieces": 2})");
  refused(R"({"operation": "message", "priority": "latency"})");
  refused(R"({"operation": "message", "one_buffer": true})");
  refused(R"({"operation": "mixed", "window": 2, "one_buffer": true})");
  refused(R"({"rate": -1})");
  refused(R"({"rate": 1e9})");
  refused(R"({"kv": {"model": "x", "dtype": "int4", "tokens": 1, "block_tokens": 16,
              "layer_groups": 1, "tp": 1, "peer_tp": 1}})");
}

TEST(FileMemory, IsReadAsItIsTyped) {
  const auto direct = file_of("file:/nvme/pages");
  ASSERT_TRUE(direct);
  EXPECT_EQ(direct->path, "/nvme/pages");
  EXPECT_TRUE(direct->direct);
  EXPECT_TRUE(file_of("file:x,direct")->direct);
  EXPECT_FALSE(file_of("file:x,buffered")->direct);
  for (const char* none : {"host", "file:", "file:,direct", "file:x,", "file:x,cached", "/x"})
    EXPECT_FALSE(file_of(none)) << none;
  EXPECT_TRUE(check_memory("file:x,buffered"));
  EXPECT_TRUE(check_memory("shared"));
  EXPECT_THAT(check_memory("file:x,cached").error().message(), HasSubstr("file:PATH[,direct"));
}

TEST(FileMemory, IsPutTogetherAgain) {
  std::vector<std::string> memories = {"host", "file:/a", "buffered", "file:/b", "file:/a"};
  join_files(memories);
  EXPECT_EQ(memories, (std::vector<std::string>{"host", "file:/a,buffered", "file:/b", "file:/a"}));
  EXPECT_EQ(paths_of(memories), (std::vector<std::string>{"/a", "/b"}));
  memories = {"buffered", "host", "direct"};
  join_files(memories);
  EXPECT_EQ(memories, (std::vector<std::string>{"buffered", "host", "direct"}));
}

TEST(FileMemory, IsForTwoSides) {
  Point point;
  point.work.size = 4096;
  point.work.peer_memory = "file:/x";
  EXPECT_TRUE(check(point));
  point.initiators = 2;
  EXPECT_THAT(check(point).error().message(), HasSubstr("one initiator and one target"));
}

}  // namespace
}  // namespace weft::perf
