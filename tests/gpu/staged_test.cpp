// Memory of GPUs that no NIC reaches: every byte through pinned buffers, whatever the GPU's streams
// do. Both engines are in this process; memory of a GPU can't be touched by the CPU (cuda_sim).
#include <gmock/gmock.h>

#include "field.hpp"

namespace weft::test {
namespace {

/// From GPU to GPU of one host nothing would be staged otherwise.
Config staging_config(const std::string& provider) {
  Config config = gpu_config(provider);
  config.share_gpu_memory = false;
  return config;
}

class Staged : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { cuda_sim::weft_cuda_sim_clear(); }
  void TearDown() override { cuda_sim::weft_cuda_sim_delay(0, 0); }
};

TEST_P(Staged, EveryByteArrivesAndNoOther) {
  for (const Sides& sides : all_sides) {
    SCOPED_TRACE(sides.name);
    constexpr std::size_t bytes = 40 * chunk + 13;
    Field field(staging_config(GetParam()), sides, bytes);
    const std::vector<std::vector<Pair>> shapes = {
        {{0, 0, 1}},
        {{bytes - 1, 0, 1}},
        {{3, 5, chunk - 1}},
        {{0, 7, chunk + 1}},
        whole(bytes),
        {{0, 9 * chunk, 100}, {8 * chunk, 11, 3 * chunk}, {300, 30 * chunk, chunk}}};
    for (const auto direction : {weft::Direction::write, weft::Direction::read})
      for (const auto& pairs : shapes) field.expect_moved(direction, pairs);
  }
}

TEST_P(Staged, WithStreamsThatRunLate) {
  constexpr std::size_t bytes = 24 * chunk;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Field field(staging_config(GetParam()), all_sides[0], bytes);
    cuda_sim::weft_cuda_sim_delay(seed, 300);
    std::vector<Pair> backwards;
    for (std::size_t i = 0; i < 24; ++i) backwards.push_back({i * chunk, (23 - i) * chunk, chunk});
    field.expect_moved(weft::Direction::write, backwards);
    field.expect_moved(weft::Direction::read, backwards);
  }
}

/// Blocks of a paged cache, in another order on each side.
std::vector<Pair> pages(std::size_t count, std::size_t page) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back({2 * i * page, 2 * ((i * 7 + 3) % count) * page, page});
  return pairs;
}

TEST_P(Staged, SmallPagesShareBuffers) {
  constexpr std::size_t page = 4096, count = 100, bytes = 2 * count * page;
  constexpr std::size_t messages = (count * page + chunk - 1) / chunk;
  for (const Sides& sides : all_sides) {
    SCOPED_TRACE(sides.name);
    Field field(staging_config(GetParam()), sides, bytes);
    const auto pairs = pages(count, page);
    for (const auto direction : {weft::Direction::write, weft::Direction::read}) {
      cuda_sim::weft_cuda_sim_clear();
      Transfer transfer = field.start(direction, pairs);
      ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
      const Report report = transfer.report();
      EXPECT_EQ(report.bytes_done, count * page);
      // Those that a buffer's end cuts are two.
      EXPECT_EQ(report.operations, count);
      EXPECT_EQ(cuda_sim::bytes_copied(Direction::device_to_host) +
                    cuda_sim::bytes_copied(Direction::host_to_device),
                (sides.local && sides.remote ? 2U : 1U) * count * page);
      // An event behind each message's copies, not behind each page's.
      const auto all = cuda_sim::records();
      const auto events = std::count_if(all.begin(), all.end(), [](const Record& each) {
        return each.operation == cuda_sim::Operation::record_event && each.phase == Phase::ended;
      });
      EXPECT_EQ(static_cast<std::size_t>(events), (sides.local && sides.remote ? 2 : 1) * messages);
      field.expect_moved(direction, pairs);
    }
  }
}

TEST_P(Staged, IsReportedAndOneSidedIsRefused) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  Transfer transfer = field.start(weft::Direction::write, whole(chunk));
  must(transfer.wait(soon()));
  EXPECT_EQ(transfer.report().transport, TransportKind::bounce);
  EXPECT_THAT(transfer.report().fallback, testing::HasSubstr("GPU memory that no NIC reaches"));
  EXPECT_EQ(field.local.place().kind, MemoryKind::device);
  EXPECT_EQ(field.local.data(), nullptr);
  TransferOptions options;
  options.transport = TransportKind::one_sided;
  const auto refused = field.pair.a.write(field.local, field.imported, whole(chunk), options);
  ASSERT_TRUE(fails_with(refused, Code::unsupported));
  EXPECT_THAT(refused.error().message(),
              testing::HasSubstr("one-sided transfers were asked for, and"));
}

TEST_P(Staged, IsVerifiedAtBothEnds) {
  for (const Sides& sides : all_sides) {
    SCOPED_TRACE(sides.name);
    constexpr std::size_t bytes = (9 << 20) + 5;  // more than is hashed at a time
    Field field(staging_config(GetParam()), sides, bytes);
    TransferOptions options;
    options.verify = true;
    for (const auto direction : {weft::Direction::write, weft::Direction::read})
      ASSERT_TRUE(succeeds(field.start(direction, whole(bytes), options).wait_quiescent(soon())));
    EXPECT_TRUE(same_bytes(field.there.bytes(), field.here.bytes()));
  }
}

TEST_P(Staged, WhatIsNotAsItWasSentIsCorrupt) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  field.expect_moved(weft::Direction::write, whole(chunk));
  const auto out = stream_of(Direction::device_to_host), in = stream_of(Direction::host_to_device);
  cuda_sim::weft_cuda_sim_clear();
  HeldAll hashing;
  for (const auto stream : {out, in}) cuda_sim::weft_cuda_sim_release(stream);
  TransferOptions options;
  options.verify = true;
  options.signal = Signal{9};
  Transfer transfer = field.start(weft::Direction::write, whole(chunk), options);
  // One copy at either end for the transfer, and one for the hash, which does not run yet.
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 4, 60'000));
  Blob other = field.there.bytes();
  other[chunk - 1] ^= std::byte{1};
  field.there.put(other);
  hashing.release();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::corrupt));
  EXPECT_TRUE(fails_with(must(field.pair.to_a.expect(9, 1)).wait(soon()), Code::remote_failed));
}

TEST_P(Staged, AGpuThatCanNotBeHashedFailsTheTransfer) {
  Field field(staging_config(GetParam()), all_sides[2], chunk);
  field.expect_moved(weft::Direction::write, whole(chunk));
  TransferOptions options;
  options.verify = true;
  cuda_sim::weft_cuda_sim_fail("cuMemcpyAsync", 2, cuda_sim::invalid_value);
  Transfer transfer = field.start(weft::Direction::write, whole(chunk), options);
  const auto failed = transfer.wait_quiescent(soon());
  ASSERT_TRUE(fails_with(failed, Code::unavailable));
  EXPECT_THAT(failed.error().to_string(), testing::HasSubstr("cuMemcpyAsync failed"));
  ASSERT_TRUE(
      succeeds(field.start(weft::Direction::write, whole(chunk), options).wait_quiescent(soon())));
}

TEST_P(Staged, AllCopiesAreOfPinnedMemoryAndCounted) {
  constexpr std::size_t bytes = 10 * chunk;
  Field field(staging_config(GetParam()), all_sides[0], bytes);
  cuda_sim::weft_cuda_sim_clear();
  for (int i = 0; i < 3; ++i) must(field.start(weft::Direction::write, whole(bytes)).wait(soon()));
  const auto counted = cuda_sim::counters();
  EXPECT_EQ(counted.pageable_copies, 0U);
  EXPECT_EQ(counted.bytes[static_cast<int>(Direction::device_to_host)], 3 * bytes);
  EXPECT_EQ(counted.bytes[static_cast<int>(Direction::host_to_device)], 3 * bytes);
}

/// The ledger, what explain() declares, and what the driver has counted are one.
TEST_P(Staged, TheLedgerIsWhatTheDriverCounted) {
  constexpr std::size_t bytes = 10 * chunk;
  Field field(staging_config(GetParam()), all_sides[0], bytes);
  const Path path = must(field.pair.a.explain(field.local, field.imported, weft::Direction::write));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_FALSE(path.gpudirect_local || path.gpudirect_remote);
  EXPECT_EQ(path.hops.front().by, Mover::copy_engine);
  EXPECT_EQ(path.hops.front().from.kind, Stop::Kind::device);
  EXPECT_EQ(path.hops.back().by, Mover::copy_engine);
  EXPECT_EQ(path.hops.back().to.kind, Stop::Kind::device);

  cuda_sim::weft_cuda_sim_clear();
  Transfer transfer = field.start(weft::Direction::write, whole(bytes));
  must(transfer.wait(soon()));
  const Report report = transfer.report();
  using Known = Report::Copied::Known;
  const auto engine_copies = [&](bool at_peer) {
    std::uint64_t sum = 0;
    for (const auto& each : report.copied) {
      if (each.by != Mover::copy_engine || each.at_peer != at_peer) continue;
      EXPECT_EQ(each.known, at_peer ? Known::declared : Known::counted);
      sum += each.bytes;
    }
    return sum;
  };
  EXPECT_EQ(engine_copies(false), cuda_sim::bytes_copied(Direction::device_to_host));
  EXPECT_EQ(engine_copies(true), cuda_sim::bytes_copied(Direction::host_to_device));
  EXPECT_EQ(static_cast<std::size_t>(
                std::count_if(report.copied.begin(), report.copied.end(),
                              [](const auto& each) { return each.known != Known::unknown; })),
            path.copies);
  EXPECT_DOUBLE_EQ(report.amplification, path.copies);
  EXPECT_EQ(report.retries, 0U);
  EXPECT_GT(report.carried, Nanoseconds::zero());
  EXPECT_LE(report.queued + report.carried, report.elapsed);
}

TEST_P(Staged, PoliciesJudgeWhatIsStaged) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  TransferOptions options;
  options.policy.emplace().require_gpudirect = true;
  const auto refused = field.pair.a.write(field.local, field.imported, whole(chunk), options);
  ASSERT_TRUE(fails_with(refused, Code::policy_refused));
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("GPUDirect"));
  options.policy->require_gpudirect = false;
  EXPECT_TRUE(succeeds(
      must(field.pair.a.write(field.local, field.imported, whole(chunk), options)).wait(soon())));
}

TEST_P(Staged, LeavesTheCallersContextAlone) {
  cuda_sim::Context own = nullptr, found = nullptr;
  cuda_sim::check(cuda_sim::cuInit(0));
  cuda_sim::check(cuda_sim::cuCtxCreate_v2(&own, 0, 0));
  {
    Field field(staging_config(GetParam()), all_sides[0], chunk);
    const std::size_t depth = cuda_sim::weft_cuda_sim_stack_depth();
    field.expect_moved(weft::Direction::write, whole(chunk));
    EXPECT_EQ(cuda_sim::weft_cuda_sim_stack_depth(), depth);
    cuda_sim::check(cuda_sim::cuCtxGetCurrent(&found));
    EXPECT_EQ(found, own);
  }
  EXPECT_EQ(cuda_sim::cuCtxDestroy_v2(own), cuda_sim::success);
}

/// Copies go on while earlier chunks are on the wire; and a receiver that takes nothing is not
/// overrun: there are as many chunks under way as there are credits.
TEST_P(Staged, CopiesOverlapWithTheWireWithinTheCredits) {
  constexpr std::size_t bytes = 16 * chunk;
  Field field(staging_config(GetParam()), all_sides[0], bytes);
  Held held(stream_used(field, weft::Direction::write, Direction::host_to_device));
  Transfer transfer = field.start(weft::Direction::write, whole(bytes));
  // The receiver's copies are queued, and none of them ends: no chunk is acknowledged.
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 2 * credits, 60'000));
  EXPECT_EQ(copies(Direction::device_to_host, Phase::ended), credits);
  EXPECT_EQ(copies(Direction::host_to_device, Phase::queued), credits);
  EXPECT_EQ(copies(Direction::host_to_device, Phase::ended), 0U);
  EXPECT_EQ(transfer.state(), State::active);
  held.step();
  // One credit comes back: one more chunk.
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 2 * credits + 2, 60'000));
  EXPECT_EQ(copies(Direction::device_to_host, Phase::ended), credits + 1);
  held.release();
  ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_TRUE(same_bytes(field.there.bytes(), field.here.bytes()));
}

TEST_P(Staged, AFailedCopyFailsTheTransferWithTheDriversWords) {
  for (const bool at_target : {false, true}) {
    SCOPED_TRACE(at_target);
    Field field(staging_config(GetParam()), at_target ? all_sides[3] : all_sides[2], 4 * chunk);
    cuda_sim::weft_cuda_sim_fail("cuMemcpyAsync", 2, cuda_sim::invalid_value);
    Transfer transfer = field.start(weft::Direction::write, whole(4 * chunk));
    const auto ended = transfer.wait_quiescent(soon());
    ASSERT_TRUE(fails_with(ended, Code::unavailable));
    EXPECT_THAT(ended.error().to_string(),
                testing::HasSubstr(at_target ? "the peer refused" : "cuMemcpyAsync failed"));
    field.expect_moved(weft::Direction::write, whole(4 * chunk));  // it was but one
  }
}

TEST_P(Staged, RevokedMemoryIsFreeOnceTheGpuHasEndedItsCopies) {
  Field field(staging_config(GetParam()), all_sides[0], 4 * chunk);
  Held held(stream_used(field, weft::Direction::write, Direction::host_to_device));
  Transfer transfer = field.start(weft::Direction::write, whole(4 * chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 5, 60'000));
  EXPECT_EQ(must(field.grant.revoke(Deadline::in(100ms))), Revoked::quarantined);
  EXPECT_TRUE(fails_with(field.remote.release(Deadline::in(100ms)), Code::quarantined));
  held.release();
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
  const Blob reused = pattern(4 * chunk, 77);
  field.there.put(reused);
  EXPECT_FALSE(transfer.wait_quiescent(soon()));
  EXPECT_TRUE(same_bytes(field.there.bytes(), reused));
  EXPECT_TRUE(succeeds(field.remote.release(soon())));
}

TEST_P(Staged, WhatIsReadIsStaleIfTheGrantEndedDuringTheCopy) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  field.expect_moved(weft::Direction::read, whole(chunk));
  const auto out_of_remote = stream_of(Direction::device_to_host);
  const Blob before = field.here.bytes();
  cuda_sim::weft_cuda_sim_clear();
  Held held(out_of_remote);
  Transfer transfer = field.start(weft::Direction::read, whole(chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  EXPECT_EQ(must(field.grant.revoke(Deadline::in(100ms))), Revoked::quarantined);
  held.release();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::stale));
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(same_bytes(field.here.bytes(), before));
}

TEST_P(Staged, AnOverdueTransferIsQuiescentOnceItsCopiesHaveEnded) {
  for (const auto direction : {weft::Direction::write, weft::Direction::read}) {
    Field field(staging_config(GetParam()), all_sides[2], chunk);
    const bool write = direction == weft::Direction::write;
    Held held(stream_used(field, direction,
                          write ? Direction::device_to_host : Direction::host_to_device));
    TransferOptions options;
    options.deadline = Deadline::in(200ms);
    const Blob before = field.there.bytes();
    Transfer transfer = field.start(direction, whole(chunk), options);
    ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
    EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::timed_out));
    EXPECT_FALSE(transfer.quiescent());
    EXPECT_TRUE(fails_with(field.local.release(Deadline::in(50ms)), Code::quarantined));
    held.release();
    EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::timed_out));
    EXPECT_TRUE(transfer.quiescent());
    EXPECT_TRUE(succeeds(field.local.release(soon())));
    EXPECT_TRUE(same_bytes(field.there.bytes(), before)) << "it was sent after its end";
  }
}

TEST_P(Staged, APeerThatDiesWhileTheGpuCopiesEndsTheTransferAfterTheCopy) {
  Field field(staging_config(GetParam()), all_sides[2], chunk);
  Held held(stream_used(field, weft::Direction::write, Direction::device_to_host));
  Transfer transfer = field.start(weft::Direction::write, whole(chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  must(field.pair.b.close(soon()));
  EXPECT_TRUE(fails_with(transfer.wait(soon()), Code::peer_down));
  EXPECT_FALSE(transfer.quiescent());
  held.release();
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::peer_down));
}

TEST_P(Staged, ClosingWaitsForNoGpuThatHangs) {
  Field field(staging_config(GetParam()), all_sides[2], chunk);
  field.expect_moved(weft::Direction::write, whole(chunk));
  cuda_sim::weft_cuda_sim_clear();
  HeldAll held;
  Transfer transfer = field.start(weft::Direction::write, whole(chunk));
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::queued, 1, 60'000));
  std::ignore = field.pair.a.close(Deadline::in(5s));
  EXPECT_NE(transfer.state(), State::active);
  EXPECT_FALSE(transfer.quiescent());
  held.release();  // the GPU writes to what was kept
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_await(Phase::ended, 1, 60'000));
}

/// Nobody knows what a GPU that fell off the bus still does: what it was copying is kept. In a
/// process of its own, whose GPU is gone afterwards.
TEST_P(Staged, AGpuThatFailsForGoodHoldsWhatItWasCopying) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto lose = [&] {
    Field field(staging_config(GetParam()), all_sides[2], 4 * chunk);
    must(field.start(weft::Direction::write, whole(chunk)).wait(soon()));
    constexpr cuda_sim::Status uncorrectable = 214;  // CUDA_ERROR_ECC_UNCORRECTABLE
    cuda_sim::weft_cuda_sim_fail("copy", 2, uncorrectable);
    Transfer transfer = field.start(weft::Direction::write, whole(4 * chunk));
    const bool failed = bool(fails_with(transfer.wait(soon()), Code::unavailable));
    const bool held = !transfer.quiescent();
    const bool kept = bool(fails_with(field.local.release(Deadline::in(50ms)), Code::quarantined));
    const bool told = bool(fails_with(field.pair.a.close(soon()), Code::quarantined));
    std::fprintf(stderr, "failed %d held %d kept %d told %d", failed, held, kept, told);
    std::quick_exit(0);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(0), "failed 1 held 1 kept 1 told 1");
}

/// A stream of the application's with work on it that does not run, and an event behind.
class Late {
 public:
  Late() { cuda_sim::weft_cuda_sim_hold(stream_); }
  ~Late() {
    release();
    cuda_sim::cuStreamSynchronize(stream_);
  }
  void fill(void* target, const Blob& bytes) {
    std::copy(bytes.begin(), bytes.end(), source_.data());
    const auto to = reinterpret_cast<cuda_sim::Address>(target);
    cuda_sim::check(cuda_sim::cuMemcpyHtoDAsync_v2(to, source_.data(), bytes.size(), stream_));
    cuda_sim::check(cuda_sim::cuEventRecord(event_, stream_));
  }
  void release() { cuda_sim::weft_cuda_sim_release(stream_); }
  void* event() const { return static_cast<cuda_sim::Event>(event_); }

 private:
  const cuda_sim::CurrentContext here_{0};
  const cuda_sim::PinnedMemory source_{4 * chunk};
  const cuda_sim::OwnedStream stream_;
  const cuda_sim::OwnedEvent event_;
};

TEST_P(Staged, ATransferWaitsForTheEventBehindTheKernelsThatFillItsMemory) {
  Field field(staging_config(GetParam()), all_sides[0], 4 * chunk);
  field.expect_moved(weft::Direction::write, whole(chunk));
  const Blob computed = pattern(4 * chunk, 5);
  Late late;
  late.fill(field.here.address(), computed);
  cuda_sim::weft_cuda_sim_clear();
  TransferOptions after;
  after.after_gpu_event = late.event();
  after.signal = Signal{9};
  Transfer waits = field.start(weft::Direction::write, whole(4 * chunk), after);
  Transfer empty = field.start(weft::Direction::write, {}, after);
  // Others are not held up by it.
  must(field.start(weft::Direction::read, std::vector<Pair>{}).wait(soon()));
  EXPECT_EQ(waits.state(), State::active);
  EXPECT_EQ(empty.state(), State::active);
  EXPECT_EQ(copies(Direction::device_to_host, Phase::queued), 0U);
  late.release();
  ASSERT_TRUE(succeeds(waits.wait_quiescent(soon())));
  ASSERT_TRUE(succeeds(empty.wait_quiescent(soon())));
  EXPECT_TRUE(succeeds(must(field.pair.to_a.expect(9, 2)).wait(soon())));
  EXPECT_TRUE(same_bytes(field.there.bytes(), computed));
}

TEST_P(Staged, WhoWaitsForHostMemoryCopiesNothingBeforeItsEvent) {
  constexpr std::size_t size = 4 << 20;  // of so much waiting threads copy
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  Config config = config_for("shm");
  config.rails = config.threads = 1;
  Couple pair = couple(config);
  Board board(pair, Memory::shared(size), Memory::shared(size));
  Late late;
  late.fill(field.here.address(), pattern(chunk, 5));
  TransferOptions after;
  after.after_gpu_event = late.event();
  const Pair all[] = {{0, 0, size}};
  Transfer transfer = must(pair.a.write(board.local, board.there, all, after));
  EXPECT_TRUE(fails_with(transfer.wait(Deadline::in(20ms)), Code::timed_out));
  EXPECT_EQ(transfer.report().bytes_done, 0U);
  board.expect_untouched();
  late.release();
  ASSERT_TRUE(succeeds(transfer.wait(soon())));
  board.expect_pieces(weft::Direction::write, all);
}

TEST_P(Staged, AnEventThatDoesNotComeEndsWithTheDeadlineOrACancel) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  const Blob before = field.there.bytes();
  Late late;
  late.fill(field.here.address(), pattern(chunk, 5));
  TransferOptions after;
  after.after_gpu_event = late.event();
  after.deadline = Deadline::in(100ms);
  Transfer overdue = field.start(weft::Direction::write, whole(chunk), after);
  EXPECT_TRUE(fails_with(overdue.wait_quiescent(soon()), Code::timed_out));
  after.deadline = soon();
  Transfer unwanted = field.start(weft::Direction::write, whole(chunk), after);
  unwanted.cancel();
  EXPECT_TRUE(fails_with(unwanted.wait_quiescent(soon()), Code::cancelled));
  EXPECT_TRUE(succeeds(field.local.release(soon())));
  late.release();
  EXPECT_TRUE(same_bytes(field.there.bytes(), before));
}

/// Calls of one entry point don't return for as long as it is there.
class BlockedDriver {
 public:
  explicit BlockedDriver(const char* name) : name_(name) {
    cuda_sim::weft_cuda_sim_block(name_, true);
  }
  ~BlockedDriver() { cuda_sim::weft_cuda_sim_block(name_, false); }
  /// Until somebody has called it.
  bool await_call() const {
    const Deadline deadline = soon();
    while (cuda_sim::weft_cuda_sim_blocked() == 0 && !deadline.passed()) std::this_thread::yield();
    return cuda_sim::weft_cuda_sim_blocked() > 0;
  }

 private:
  const char* const name_;
};

TEST_P(Staged, WhileTheDriverLooksAtAnEventATransferCanBeAskedAfter) {
  Field field(staging_config(GetParam()), all_sides[0], chunk);
  Late late;
  late.fill(field.here.address(), pattern(chunk, 5));
  TransferOptions after;
  after.after_gpu_event = late.event();
  Transfer transfer = field.start(weft::Direction::write, whole(chunk), after);
  {
    const BlockedDriver blocked("cuEventQuery");
    ASSERT_TRUE(blocked.await_call());
    EXPECT_TRUE(fails_with(transfer.wait(Deadline::in(10ms)), Code::timed_out));
    transfer.cancel();
    EXPECT_EQ(transfer.state(), State::active) << "the event must stay until it was looked at";
  }
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::cancelled));
}

TEST_P(Staged, LeavesNothingOfTheGpusBehind) {
  {
    const Field first(staging_config(GetParam()), all_sides[0], chunk);
  }  // the GPUs' contexts stay
  const auto streams = cuda_sim::weft_cuda_sim_streams();
  const auto events = cuda_sim::weft_cuda_sim_events();
  const auto regions = cuda_sim::weft_cuda_sim_regions();
  for (int i = 0; i < 3; ++i) {
    Field field(staging_config(GetParam()), all_sides[0], 8 * chunk);
    field.expect_moved(weft::Direction::write, whole(8 * chunk));
  }
  EXPECT_EQ(cuda_sim::weft_cuda_sim_streams(), streams);
  EXPECT_EQ(cuda_sim::weft_cuda_sim_events(), events);
  EXPECT_EQ(cuda_sim::weft_cuda_sim_regions(), regions);
}

TEST_P(Staged, WhatRunsOutOfTheGpusMemoryIsRefused) {
  Engine engine = must(Engine::open(gpu_config(GetParam())));
  Store store(0, chunk);
  auto* start = static_cast<std::byte*>(store.address());
  EXPECT_TRUE(succeeds(engine.add(Memory::adopt(start + 100, chunk - 100))));
  const auto beyond = engine.add(Memory::adopt(start, 64 * chunk));
  ASSERT_TRUE(fails_with(beyond, Code::invalid_argument));
  EXPECT_THAT(beyond.error().message(), testing::HasSubstr("leave the GPU's memory"));
}

TEST_P(Staged, AFaultOfTheDriversIsTold) {
  Store store(0, chunk);
  for (const char* name : {"cuStreamCreate", "cuMemHostRegister", "cuCtxPushCurrent"}) {
    Couple pair = couple(gpu_config(GetParam()));
    Board board(pair, chunk, chunk);
    const Pair all[] = {{0, 0, chunk}};
    board.expect_moved(weft::Direction::write, all, {.transport = TransportKind::bounce});
    // Now there are buffers to pin.
    cuda_sim::weft_cuda_sim_fail(name, 1, cuda_sim::out_of_memory);
    const auto added = pair.a.add(store.memory());
    ASSERT_TRUE(fails_with(added, Code::out_of_memory)) << name;
    EXPECT_THAT(added.error().message(), testing::HasSubstr(name));
    EXPECT_TRUE(succeeds(pair.a.add(store.memory())));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Staged, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
