// What engines say of the paths of their transfers, and what policies make of it.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engines.hpp"

namespace weft::test::paths_tests {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Matcher;
using testing::Not;

constexpr std::size_t size = 1 << 20;
const std::string why_bounced = "one-sided: bounce buffers were asked for";
const Pair piece[] = {{0, 0, size}};

/// Of the rails to the peer: whether they are in memory.
Capability record_of(const Engine& engine, const Path& path) {
  for (const RailInfo& rail : engine.info().rails)
    if (rail.name == path.rails.front()) return rail.capability;
  ADD_FAILURE() << "the path names no rail of the engine's";
  return {};
}

class Paths : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, Paths, testing::ValuesIn(all_variants()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Paths, AreWhatTheRecordsSay) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Path path = must(pair.a.explain(board.local, board.there, direction));
    const Capability record = record_of(pair.a, path);
    const bool bounced = GetParam().transport == TransportKind::bounce;
    const Carriage& carriage = bounced                         ? record.message_carriage
                               : direction == Direction::write ? record.write_carriage
                                                               : record.read_carriage;
    EXPECT_EQ(path.direction, direction);
    EXPECT_EQ(path.transport, GetParam().transport);
    EXPECT_EQ(path.copies, carriage.copies() + (bounced ? 2 : 0));
    EXPECT_EQ(path.cpu_copies, path.copies) << "there is no GPU";
    EXPECT_EQ(path.same_host, pair.to_b.same_host());
    EXPECT_EQ(path.rails, pair.to_b.rails());
    EXPECT_EQ(path.refused, "");
    const Stop& ours = direction == Direction::write ? path.hops.front().from : path.hops.back().to;
    EXPECT_EQ(ours.numa_node, board.local.place().numa_node);
    EXPECT_FALSE(path.limit.empty());
    EXPECT_THAT(path.not_used, bounced
                                   ? Matcher<const std::vector<std::string>&>(Contains(why_bounced))
                                   : Not(Contains(why_bounced)));
  }
}

TEST_P(Paths, AreThoseThatReportsTell) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Path path = must(pair.a.explain(board.local, board.there, Direction::write));
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  must(transfer.wait(soon()));
  const Report report = transfer.report();
  EXPECT_EQ(report.transport, path.transport);
  for (const auto& share : report.rails) EXPECT_THAT(path.rails, Contains(share.rail));
}

/// However often the provider has no room for a chunk.
TEST_P(Paths, TheEngineMakesItsOwnCopiesOnce) {
  Couple pair = couple(config_for(GetParam()));
  constexpr std::size_t large = 16 << 20;
  Board board(pair, large, large);
  const Pair all[] = {{0, 0, large}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    Transfer transfer =
        must(direction == Direction::write ? pair.a.write(board.local, board.there, all)
                                           : pair.a.read(board.local, board.there, all));
    must(transfer.wait(soon()));
    std::uint64_t counted = 0;
    for (const auto& each : transfer.report().copied)
      counted += each.known == Report::Copied::Known::counted ? each.bytes : 0;
    EXPECT_EQ(counted, GetParam().transport == TransportKind::bounce ? large : 0);
  }
}

TEST_P(Paths, CanBeToldOfPlacesAlone) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Path path = must(pair.to_b.explain(Place{}, Place{}, Direction::write));
  const Path segments = must(pair.a.explain(board.local, board.there, Direction::write));
  EXPECT_EQ(path.copies, segments.copies);
  EXPECT_EQ(path.rails, segments.rails);

  const Place gpu{MemoryKind::device, -1, -1};
  if (GetParam().transport == TransportKind::one_sided) {
    EXPECT_TRUE(fails_with(pair.to_b.explain(gpu, Place{}, Direction::write), Code::unsupported));
  } else {
    const Path staged = must(pair.to_b.explain(gpu, Place{}, Direction::write));
    EXPECT_EQ(staged.hops.front().by, Mover::copy_engine);
    EXPECT_THAT(staged.not_used, Contains(HasSubstr("GPUDirect: ")));
  }
  EXPECT_TRUE(
      fails_with(pair.to_b.explain(Place{MemoryKind::device, -1, 4096}, Place{}, Direction::write),
                 Code::not_found));
  EXPECT_TRUE(fails_with(
      pair.to_b.explain(Place{MemoryKind::file, -1, -1, 4096}, Place{}, Direction::write),
      Code::not_found));
  EXPECT_TRUE(
      fails_with(pair.to_b.explain(Place{MemoryKind::host, 4096, -1}, Place{}, Direction::write),
                 Code::not_found));
}

/// The sentence of the refusal; empty if the transfer was taken, which is then waited for.
std::string refused(Couple& pair, Board& board, const TransferOptions& options) {
  auto transfer = pair.a.write(board.local, board.there, piece, options);
  if (transfer) {
    EXPECT_TRUE(succeeds(transfer->wait(soon())));
    return "";
  }
  EXPECT_TRUE(fails_with(transfer, Code::policy_refused));
  EXPECT_EQ(transfer.error().peer(), pair.b.name());
  return transfer.error().message();
}

std::string refused(const Config& config, const TransferOptions& options) {
  Couple pair = couple(config, config);
  Board board(pair, size, size);
  return refused(pair, board, options);
}

TEST_P(Paths, TransfersMayRefuseThem) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Path path = must(pair.a.explain(board.local, board.there, Direction::write));
  if (path.copies > 0) {
    const TransferOptions none{.policy = Policy{.max_copies = path.copies - 1}};
    const std::string why = refused(pair, board, none);
    EXPECT_THAT(why, HasSubstr("the transfer's policy allows"));
    EXPECT_EQ(must(pair.a.explain(board.local, board.there, Direction::write, none)).refused, why);
    EXPECT_THAT(refused(pair, board, {.policy = Policy{.forbid_cpu_copies = true}}),
                HasSubstr("forbids copies by the CPU"));
  }
  EXPECT_THAT(refused(pair, board, {.policy = Policy{.min_gbps = 1e9}}),
              HasSubstr("asks for 1000000000 Gb/s"));
  EXPECT_THAT(refused(pair, board, {.policy = Policy{.providers = {"another"}}}),
              HasSubstr("allows only another, and the path goes over " + path.provider));
  board.expect_untouched();
  EXPECT_EQ(pair.a.info().transfers_active, 0U);
  EXPECT_EQ(refused(pair, board,
                    {.policy = Policy{.max_copies = path.copies,
                                      .require_gpudirect = true,
                                      .providers = {path.provider}}}),
            "");
}

TEST_P(Paths, AnEnginesPolicyIsForAllItsTransfers) {
  Config config = config_for(GetParam());
  config.policy.min_gbps = 1e9;
  EXPECT_THAT(refused(config, {}), HasSubstr("this engine's policy asks for"));
  EXPECT_THAT(refused(config, {.policy = Policy{.min_gbps = 1}}),
              HasSubstr("this engine's policy asks for"))
      << "the stricter one counts";
}

TEST_P(Paths, ClassesHavePoliciesOfTheirOwn) {
  Config config = config_for(GetParam());
  config.latency_policy.min_gbps = 1e9;
  config.bulk_policy.min_gbps = 2e9;
  Couple pair = couple(config, config);
  Board board(pair, size, size);
  EXPECT_EQ(refused(pair, board, {}), "");
  EXPECT_THAT(refused(pair, board, {.priority = Priority::latency}),
              HasSubstr("the policy of class latency asks for 1000000000 Gb/s"));
  EXPECT_THAT(refused(pair, board, {.priority = Priority::bulk}),
              HasSubstr("the policy of class bulk asks for 2000000000 Gb/s"));
}

TEST_P(Paths, PeersHavePoliciesOfTheirOwn) {
  Config config = config_for(GetParam()), strict = config;
  config.name = "policy-b";
  strict.peer_policies["policy-b"].min_gbps = 1e9;
  strict.peer_policies["policy-c"].max_copies = 0;
  Couple pair = couple(strict, config);
  Board board(pair, size, size);
  EXPECT_THAT(refused(pair, board, {}), HasSubstr("the policy for this peer asks for"));
}

TEST_P(Paths, APreparedListIsRefusedEachTime) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Prepared prepared = must(pair.a.prepare(board.local, board.there, Direction::write, piece));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(fails_with(pair.a.submit(prepared, {.policy = Policy{.min_gbps = 1e9}}),
                           Code::policy_refused));
    EXPECT_TRUE(succeeds(must(pair.a.submit(prepared)).wait(soon())));
  }
}

TEST_P(Paths, PiecesThatAreBouncedCountThatCopy) {
  Couple pair = couple(config_for(GetParam()));
  Board board(pair, size, size);
  const Path path = must(pair.a.explain(board.local, board.there, Direction::write));
  if (path.bounced_below == 0) GTEST_SKIP() << "nothing is bounced on this path";
  const TransferOptions options{.policy = Policy{.max_copies = path.copies}};
  const Pair large[] = {{0, 0, path.bounced_below}}, small[] = {{0, 0, path.bounced_below - 1}};
  EXPECT_TRUE(succeeds(must(pair.a.write(board.local, board.there, large, options)).wait(soon())));
  const auto refused = pair.a.write(board.local, board.there, small, options);
  ASSERT_TRUE(fails_with(refused, Code::policy_refused));
  EXPECT_THAT(refused.error().message(), HasSubstr("bounced"));
}

Report moved(Couple& pair, const Board& board, Direction direction) {
  Transfer transfer =
      must(direction == Direction::write ? pair.a.write(board.local, board.there, piece)
                                         : pair.a.read(board.local, board.there, piece));
  must(transfer.wait(soon()));
  return transfer.report();
}

TEST(PathsOfSharedMemory, AreCopiedByThisProcessAndCounted) {
  Couple pair = couple(config_for(Variant{"shm", TransportKind::one_sided}));
  Board board(pair, Memory::own(size), Memory::shared(size));
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Path path = must(pair.a.explain(board.local, board.there, direction));
    ASSERT_EQ(path.hops.size(), 1U);
    EXPECT_EQ(path.hops.front().by, Mover::cpu);
    EXPECT_EQ(path.copies, 1U);
    EXPECT_EQ(path.copies_local, 1U);
    EXPECT_THAT(path.not_used, Not(Contains(HasSubstr("mapped"))));
    board.repaint();
    board.expect_moved(direction, piece);
    const Report report = moved(pair, board, direction);
    ASSERT_EQ(report.copied.size(), 1U);
    EXPECT_EQ(report.copied.front().known, Report::Copied::Known::counted);
    EXPECT_EQ(report.copied.front().by, Mover::cpu);
    EXPECT_FALSE(report.copied.front().at_peer);
    EXPECT_EQ(report.copied.front().bytes, size);
  }
  EXPECT_THAT(must(pair.a.metrics_text()), Not(HasSubstr("weft_copied_bytes_total{by=\"kernel\"")));
}

TEST(PathsOfSharedMemory, WhatIsNotMappedIsSaidToBeTheKernels) {
  Couple pair = couple(config_for(Variant{"shm", TransportKind::one_sided}));
  Board board(pair, size, size);
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Path path = must(pair.a.explain(board.local, board.there, direction));
    EXPECT_EQ(path.hops.front().by, Mover::kernel);
    EXPECT_THAT(path.not_used, Contains("mapped: the memory lies behind no memfd"));
    const Report report = moved(pair, board, direction);
    ASSERT_EQ(report.copied.size(), 1U);
    EXPECT_EQ(report.copied.front().known, Report::Copied::Known::declared);
    EXPECT_EQ(report.copied.front().by, Mover::kernel);
    EXPECT_EQ(report.copied.front().bytes, size);
  }
  const Path places = must(pair.to_b.explain(Place{}, Place{}, Direction::write));
  EXPECT_THAT(places.not_used, Contains("mapped: known once there is a grant"));
}

TEST(PathsOfSharedMemory, AFileThatIsCutOffUnderATransferIsAnErrorAndNobodysEnd) {
  Couple pair = couple(config_for(Variant{"shm", TransportKind::one_sided}));
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, size), 0);
  Board board(pair, Memory::map(file, 0, size), Memory::shared(size));
  for (const Direction direction : {Direction::write, Direction::read}) {
    const Path path = must(pair.a.explain(board.local, board.there, direction));
    EXPECT_EQ(path.hops.front().by, Mover::kernel);
    EXPECT_THAT(path.not_used, Contains(HasSubstr("mapped: the local memory's file")));
    board.repaint();
    board.expect_moved(direction, piece);
  }
  ASSERT_EQ(ftruncate(file, 0), 0);
  ::close(file);
  Transfer transfer = must(pair.a.write(board.local, board.there, piece));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::fabric_failed));
  ASSERT_EQ(ftruncate(board.local.fd(), size), 0);  // or to compare it would be this process's end
}

TEST(PathsOfEngines, PoliciesDoNotCountTheCopiesOfEmptyPieces) {
  Couple pair = couple(config_for("tcp"));
  Board board(pair, size, size);
  const Pair pieces[] = {{0, 0, size}, {0, 0, 0}};
  board.repaint();
  board.expect_moved(Direction::write, pieces, {.policy = Policy{.max_copies = 2}});
}

TEST(PathsOfEngines, ProvidersThatThePolicyForbidsAreNotOpened) {
  Config config = config_for("tcp");
  config.providers = {};
  config.policy.providers = {"tcp"};
  const Engine engine = must(Engine::open(config));
  for (const RailInfo& rail : engine.info().rails) EXPECT_THAT(rail.name, HasSubstr("tcp"));
  config.policy.providers = {"pigeon"};
  const auto none = Engine::open(config);
  ASSERT_TRUE(fails_with(none, Code::not_found));
  EXPECT_THAT(none.error().message(), HasSubstr("'pigeon', which is no provider"));
}

TEST(PathsOfEngines, WhatThePeerLacksIsSaid) {
  Config both = config_for("tcp"), less = both;
  both.providers = {"shm", "tcp"};
  Couple pair = couple(both, less);
  const Path path = must(pair.to_b.explain(Place{}, Place{}, Direction::write));
  EXPECT_EQ(path.provider, "tcp");
  // By the name in its record, which tests may make up.
  std::string shm;
  for (const auto& rail : pair.a.info().rails)
    if (rail.capability.same_host_only) shm = rail.capability.provider;
  EXPECT_THAT(path.not_used, Contains(HasSubstr(shm + ": the peer has none")));
}

TEST(PathsOfEngines, AnothersHandlesAreRefused) {
  Couple pair = couple(config_for("tcp"));
  Board board(pair, size, size);
  EXPECT_TRUE(fails_with(pair.b.explain(board.local, board.there, Direction::write),
                         Code::invalid_argument));
}

}  // namespace
}  // namespace weft::test::paths_tests
