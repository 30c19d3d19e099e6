// Memory of GPUs that the other side lends: one copy by the GPU, under the same leases as all else.
// Both engines are in this process; tests/gpu/lending_test.cpp has them in two.
#include <gmock/gmock.h>

#include "field.hpp"

namespace weft::test {
namespace {

using Move = weft::Direction;
using testing::HasSubstr;

constexpr Sides lent_sides[] = {all_sides[0], all_sides[1]};

/// So that all is mapped and open, and of what comes then there are the only records.
void move_before(Field& field, Move direction) {
  field.expect_moved(direction, whole(chunk));
  cuda_sim::weft_cuda_sim_clear();
}

class Lent : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { cuda_sim::weft_cuda_sim_clear(); }
  void TearDown() override { cuda_sim::weft_cuda_sim_delay(0, 0); }
  Config config = gpu_config(GetParam());
};

TEST_P(Lent, EveryByteArrivesAndNoOtherAndNoneThroughTheHost) {
  for (const Sides& sides : lent_sides) {
    SCOPED_TRACE(sides.name);
    constexpr std::size_t bytes = 40 * chunk + 13;
    Field field(config, sides, bytes);
    const std::vector<std::vector<Pair>> shapes = {
        {{0, 0, 1}},
        {{bytes - 1, 0, 1}},
        {{3, 5, chunk - 1}},
        whole(bytes),
        {{0, 9 * chunk, 100}, {8 * chunk, 11, 3 * chunk}, {300, 30 * chunk, chunk}}};
    for (const auto direction : {Move::write, Move::read})
      for (const auto& pairs : shapes) field.expect_moved(direction, pairs);
    cuda_sim::weft_cuda_sim_clear();
    must(field.start(Move::write, whole(bytes)).wait(soon()));
    EXPECT_EQ(cuda_sim::bytes_copied(sides.local == sides.remote ? Direction::device_to_device
                                                                 : Direction::peer),
              bytes);
    EXPECT_EQ(cuda_sim::bytes_copied(Direction::device_to_host), 0U);
  }
}

TEST_P(Lent, WithStreamsThatRunLate) {
  constexpr std::size_t bytes = 24 * chunk;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Field field(config, all_sides[0], bytes);
    cuda_sim::weft_cuda_sim_delay(seed, 300);
    std::vector<Pair> backwards;
    for (std::size_t i = 0; i < 24; ++i) backwards.push_back({i * chunk, (23 - i) * chunk, chunk});
    field.expect_moved(Move::write, backwards);
    field.expect_moved(Move::read, backwards);
  }
}

TEST_P(Lent, IsExplainedAndCounted) {
  constexpr std::size_t bytes = 10 * chunk;
  Field field(config, all_sides[0], bytes);
  const Path path = must(field.pair.a.explain(field.local, field.imported, Move::write));
  EXPECT_EQ(path.transport, TransportKind::device_copy);
  ASSERT_EQ(path.hops.size(), 1U);
  EXPECT_EQ(path.hops.front().by, Mover::copy_engine);
  EXPECT_EQ(path.copies, 1U);
  EXPECT_EQ(path.cpu_copies, 0U);

  cuda_sim::weft_cuda_sim_clear();
  Transfer transfer = field.start(Move::write, whole(bytes));
  must(transfer.wait(soon()));
  const Report report = transfer.report();
  EXPECT_EQ(report.transport, TransportKind::device_copy);
  ASSERT_EQ(report.copied.size(), 1U);
  EXPECT_EQ(report.copied.front().by, Mover::copy_engine);
  EXPECT_EQ(report.copied.front().known, Report::Copied::Known::counted);
  EXPECT_EQ(report.copied.front().bytes, cuda_sim::bytes_copied(Direction::peer));
  EXPECT_DOUBLE_EQ(report.amplification, 1.0);
}

TEST_P(Lent, KeepsToPolicies) {
  Field field(config, all_sides[0], chunk);
  TransferOptions options;
  Policy& policy = options.policy.emplace();
  policy.max_copies = 1;
  policy.forbid_cpu_copies = policy.require_gpudirect = true;
  must(field.start(Move::write, whole(chunk), options).wait(soon()));
  policy.max_copies = 0;
  const auto refused = field.pair.a.write(field.local, field.imported, whole(chunk), options);
  ASSERT_TRUE(fails_with(refused, Code::policy_refused));
  EXPECT_THAT(refused.error().message(), HasSubstr("the path over the GPU's copy engine makes 1"));
}

TEST_P(Lent, IsPassedOverWhereItIsNotWantedAndSaysWhy) {
  Config keeps = config;
  keeps.share_gpu_memory = false;
  const Config* const pairs[][2] = {{&keeps, &config}, {&config, &keeps}};
  for (const auto& [a, b] : pairs) {
    Field field(*a, all_sides[0], chunk, {}, b);
    const Path path = must(field.pair.a.explain(field.local, field.imported, Move::write));
    EXPECT_EQ(path.transport, TransportKind::bounce);
    EXPECT_THAT(path.not_used,
                testing::Contains(HasSubstr(
                    "from GPU to GPU: " + std::string(a == &keeps ? "this engine" : "the owner") +
                    " shares no GPU memory")));
    field.expect_moved(Move::write, whole(chunk));
    TransferOptions options;
    options.transport = TransportKind::device_copy;
    const auto refused = field.pair.a.write(field.local, field.imported, whole(chunk), options);
    ASSERT_TRUE(fails_with(refused, Code::unsupported));
    EXPECT_THAT(refused.error().message(), HasSubstr("copies from GPU to GPU were asked for"));
  }
  Field mixed(config, all_sides[2], chunk);
  TransferOptions options;
  options.transport = TransportKind::device_copy;
  EXPECT_TRUE(fails_with(mixed.pair.a.write(mixed.local, mixed.imported, whole(chunk), options),
                         Code::unsupported));
  mixed.expect_moved(Move::write, whole(chunk));
}

TEST_P(Lent, RevokedMemoryIsFreeOnceTheBorrowersCopiesHaveEnded) {
  for (const Move direction : {Move::write, Move::read}) {
    Field field(config, all_sides[0], 4 * chunk);
    move_before(field, direction);
    HeldAll held;
    Transfer transfer = field.start(direction, whole(4 * chunk));
    ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
    EXPECT_EQ(must(field.grant.revoke(Deadline::in(100ms))), Revoked::quarantined);
    EXPECT_TRUE(fails_with(field.remote.release(Deadline::in(100ms)), Code::quarantined));
    held.release();
    EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
    const Blob reused = pattern(4 * chunk, 77);
    field.there.put(reused);
    EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
    EXPECT_TRUE(same_bytes(field.there.bytes(), reused));
    EXPECT_TRUE(succeeds(field.remote.release(soon())));
  }
}

TEST_P(Lent, WhatIsReadAfterTheEndIsStaleThoughNobodySaidSo) {
  Field field(config, all_sides[0], chunk, losing<core::RevokeRequest>());
  field.expect_moved(Move::read, whole(chunk));
  // The borrower can't confirm what it does not hear of.
  EXPECT_EQ(must(field.grant.revoke(Deadline::in(100ms))), Revoked::quarantined);
  EXPECT_TRUE(fails_with(field.start(Move::read, whole(chunk)).wait(soon()), Code::stale));
}

TEST_P(Lent, WhoeverLeavesGivesItBack) {
  Field field(config, all_sides[0], chunk);
  field.expect_moved(Move::write, whole(chunk));
  must(field.pair.to_b.disconnect());
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
}

TEST_P(Lent, AFailedCopyFailsTheTransferWithTheDriversWords) {
  Field field(config, all_sides[0], 4 * chunk);
  cuda_sim::weft_cuda_sim_fail("cuMemcpyAsync", 1, cuda_sim::invalid_value);
  const auto ended = field.start(Move::write, whole(4 * chunk)).wait_quiescent(soon());
  ASSERT_TRUE(fails_with(ended, Code::unavailable));
  EXPECT_THAT(ended.error().to_string(), HasSubstr("cuMemcpyAsync failed"));
  field.expect_moved(Move::write, whole(4 * chunk));
}

TEST_P(Lent, AnOverdueTransferIsQuiescentOnceItsCopiesHaveEnded) {
  Field field(config, all_sides[0], chunk);
  move_before(field, Move::write);
  HeldAll held;
  TransferOptions options;
  options.deadline = Deadline::in(200ms);
  Transfer transfer = field.start(Move::write, whole(chunk), options);
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
  EXPECT_FALSE(transfer.quiescent());
  EXPECT_TRUE(fails_with(field.local.release(Deadline::in(50ms)), Code::quarantined));
  held.release();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
  EXPECT_TRUE(succeeds(field.local.release(soon())));
}

TEST_P(Lent, APeerThatClosesWhileTheGpuCopiesIsToldThatItDoes) {
  Field field(config, all_sides[0], chunk);
  move_before(field, Move::write);
  HeldAll held;
  Transfer transfer = field.start(Move::write, whole(chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  EXPECT_TRUE(fails_with(field.pair.b.close(Deadline::in(300ms)), Code::quarantined));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::stale)) << "it was asked to stop before";
  EXPECT_FALSE(transfer.quiescent());
  held.release();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
}

TEST_P(Lent, ClosingWaitsForNoGpuThatHangs) {
  Field field(config, all_sides[0], chunk);
  move_before(field, Move::write);
  HeldAll held;
  Transfer transfer = field.start(Move::write, whole(chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  EXPECT_TRUE(fails_with(field.pair.a.close(Deadline::in(5s)), Code::quarantined));
  EXPECT_NE(transfer.state(), State::active);
  EXPECT_FALSE(transfer.quiescent());
  held.release();  // the GPU writes to what was kept
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::ended, 1, 60'000));
}

INSTANTIATE_TEST_SUITE_P(Gpu, Lent, testing::ValuesIn(all_providers()),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace weft::test
