// Memory of GPUs that NICs read and write themselves (GPUDirect): no copy, in order, and said so;
// and what is staged instead where something speaks against it. Both engines are in this process,
// over the stand-in driver and NICs of the test's own (direct_nic.hpp). GPU 0 sees what NICs write
// only behind a flush, GPU 1 in order, and GPU 2 can't be flushed.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>

#include "cuda_sim.hpp"
#include "direct_nic.hpp"
#include "engines.hpp"
#include "store.hpp"

namespace weft::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::size_t page = 4096;
constexpr std::size_t size = 600'000;
constexpr std::uint64_t ours = 1, theirs = 2;
constexpr std::uint64_t arrival = 7;
constexpr Direction both[] = {Direction::write, Direction::read};

/// Which GPU the two sides' memory is of; none: the CPU's.
struct Sides {
  const char* name;
  std::optional<int> local, remote;
};
constexpr Sides all_sides[] = {{"gpu_to_gpu", 0, 1},
                               {"same_gpu", 0, 0},
                               {"gpu_to_host", 0, std::nullopt},
                               {"host_to_gpu", std::nullopt, 1}};

std::vector<Pair> whole() {
  return {{0, 0, size}};
}

Config direct_config(const std::string& provider, unsigned rails) {
  Config config = config_for(provider, rails);
  config.share_gpu_memory = false;  // else the GPU copies from GPU to GPU by itself
  config.bounce_buffer_bytes = 64 << 10;
  config.bounce_buffers = 4;
  return config;
}

using Nics = std::vector<std::shared_ptr<DirectNic>>;

Nics some_nics(std::size_t count) {
  Nics nics;
  for (std::size_t i = 0; i < count; ++i) nics.push_back(std::make_shared<DirectNic>());
  return nics;
}

/// Two engines with so many rails each over NICs of the test's, and a segment each, that of `b`
/// granted to `a`.
struct Field {
  Field(const std::string& provider, const Sides& sides, Nics nics = some_nics(2))
      : nics(std::move(nics)),
        opening(this->nics),
        here(sides.local, size),
        there(sides.remote, size),
        pair(couple(direct_config(provider, static_cast<unsigned>(this->nics.size() / 2)))),
        local(must(pair.a.add(here.memory()))),
        remote(must(pair.b.add(there.memory()))),
        grant(must(remote.grant({}, Rights::read_write))),
        imported(must(pair.a.import(grant.blob()))) {
    paint();
  }
  void paint() {
    here.fill(ours);
    there.fill(theirs);
    cuda_sim::weft_cuda_sim_clear();
  }
  Result<Transfer> submit(Direction direction, std::span<const Pair> pairs,
                          const TransferOptions& options = {}) {
    return direction == Direction::write ? pair.a.write(local, imported, pairs, options)
                                         : pair.a.read(local, imported, pairs, options);
  }
  Path path(Direction direction = Direction::write) {
    return must(pair.a.explain(local, imported, direction));
  }
  /// Moves the pieces, and compares both memories in and around them. Returns what the transfer
  /// reports.
  Report expect_moved(Direction direction, std::span<const Pair> pairs,
                      const TransferOptions& options = {}) {
    paint();
    Transfer transfer = must(submit(direction, pairs, options));
    EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    copied = copies_so_far();
    flushed = cuda_sim::counters().flushes;
    const bool write = direction == Direction::write;
    const auto pieces = landed(direction, pairs, write ? ours : theirs);
    const std::vector<Landed> none;
    EXPECT_TRUE(there.holds(theirs, write ? pieces : none));
    EXPECT_TRUE(here.holds(ours, write ? none : pieces));
    return transfer.report();
  }
  static std::uint64_t copies_so_far() {
    const auto counted = cuda_sim::counters();
    std::uint64_t sum = 0;
    for (const std::uint64_t each : counted.copies) sum += each;
    return sum;
  }

  const Nics nics;
  const DirectNics opening;
  Store here, there;  // outlive the engines
  Couple pair;
  Segment local, remote;
  Grant grant;
  Remote imported;
  // Of the driver's, by the last expect_moved().
  std::uint64_t copied = 0, flushed = 0;
};

class Direct : public testing::TestWithParam<std::string> {};

TEST_P(Direct, EveryByteArrivesAndNoOtherWithoutACopy) {
  for (const Sides& sides : all_sides) {
    SCOPED_TRACE(sides.name);
    Field field(GetParam(), sides);
    const std::vector<std::vector<Pair>> shapes = {
        {{0, 0, 1}},
        {{size - 1, 0, 1}},
        {{3, 5, page - 1}},
        {{0, 7, page + 1}},
        whole(),
        {{0, 9 * page, 100}, {8 * page, 11, 3 * page}, {300, 30 * page, page}}};
    for (const Direction direction : both)
      for (const auto& pairs : shapes) {
        const Report report = field.expect_moved(direction, pairs);
        EXPECT_EQ(report.transport, TransportKind::one_sided);
        EXPECT_EQ(field.copied, 0U);
        EXPECT_THAT(report.fallback, testing::Not(HasSubstr("copied through the hosts' memory")));
      }
    EXPECT_GT(field.nics[0]->by_dmabuf + field.nics[1]->by_dmabuf, 0U);
  }
}

TEST_P(Direct, MemoryThatBeginsWithinAPage) {
  Field field(GetParam(), all_sides[0]);
  Store here(0, size), there(1, size);
  here.fill(ours);
  there.fill(theirs);
  const auto odd = [](Store& store, std::size_t at, std::size_t bytes) {
    return Memory::adopt(reinterpret_cast<std::byte*>(store.device_address()) + at, bytes);
  };
  Segment local = must(field.pair.a.add(odd(here, 100, 50'000)));
  Segment remote = must(field.pair.b.add(odd(there, 5'001, 60'000)));
  const Range part[] = {{3'000, 52'000}};
  Grant grant = must(remote.grant(part, Rights::write));
  Remote imported = must(field.pair.a.import(grant.blob()));
  const Pair pairs[] = {{11, 3'000, 40'000}};
  Transfer transfer = must(field.pair.a.write(local, imported, pairs));
  EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_EQ(transfer.report().transport, TransportKind::one_sided);
  EXPECT_TRUE(there.holds(theirs, {{ours, 5'001 + 3'000, 100 + 11, 40'000}}));
  must(local.release(soon()));
  must(remote.release(soon()));
}

TEST_P(Direct, MemoryThatTheNicsTakeOnlyInParts) {
  constexpr std::size_t part = std::size_t{16} << 20, large = 2 * part + 5000;
  const Nics nics = some_nics(4);
  for (const auto& nic : nics) nic->most_bytes = part;
  Field field(GetParam(), all_sides[0], nics);
  Store here(0, large), there(1, large);
  here.fill(ours);
  there.fill(theirs);
  Segment local = must(field.pair.a.add(here.memory()));
  Segment remote = must(field.pair.b.add(there.memory()));
  Grant grant = must(remote.grant({}, Rights::read_write));
  const Remote imported = must(field.pair.a.import(grant.blob()));
  // Over the seams, which lie at different places of the two pieces.
  const Pair pairs[] = {{0, 3000, part + 7}, {part + 100, part + 4000, part}};
  Transfer transfer = must(field.pair.a.write(local, imported, pairs));
  EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_EQ(transfer.report().transport, TransportKind::one_sided);
  EXPECT_TRUE(there.holds(theirs, landed(Direction::write, pairs, ours)));
  must(local.release(soon()));
  must(remote.release(soon()));
}

TEST_P(Direct, IsDeclaredAndCountedToTakeNoCopies) {
  Field field(GetParam(), all_sides[0]);
  for (const Direction direction : both) {
    const Path path = field.path(direction);
    EXPECT_EQ(path.transport, TransportKind::one_sided);
    EXPECT_TRUE(path.gpudirect_local && path.gpudirect_remote);
    EXPECT_EQ(path.copies, 0U);
    EXPECT_THAT(path.not_used, testing::Not(Contains(HasSubstr("GPUDirect"))));
    TransferOptions strict;
    strict.policy = Policy{.max_copies = 0, .require_gpudirect = true};
    const Report report = field.expect_moved(direction, whole(), strict);
    EXPECT_EQ(report.amplification, 0);
    EXPECT_EQ(field.copied, 0U);
  }
}

TEST_P(Direct, SynchronousCopiesOfTheMemoryAreMadeSynchronous) {
  Field field(GetParam(), all_sides[0]);
  for (const Store* store : {&field.here, &field.there}) {
    int on = 0;
    cuda_sim::check(cuda_sim::cuPointerGetAttribute(&on, cuda_sim::pointer_sync_memops,
                                                    store->device_address()));
    EXPECT_EQ(on, 1);
  }
}

TEST_P(Direct, ASignalComesBehindTheFlushThatTheGpuNeeds) {
  for (const int gpu : {0, 1}) {
    Field field(GetParam(), {"", std::nullopt, gpu});
    TransferOptions options;
    options.signal = Signal{arrival};
    auto expected = must(field.pair.to_a.expect(arrival, 1));
    Transfer transfer = must(field.submit(Direction::write, whole(), options));
    EXPECT_TRUE(succeeds(expected.wait(soon())));
    if (gpu == 0)
      EXPECT_GT(cuda_sim::counters().flushes, 0U);
    else
      EXPECT_EQ(cuda_sim::counters().flushes, 0U) << "the GPU keeps the order by itself";
    EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  }
}

TEST_P(Direct, WithoutTheFlushThereIsNoSignal) {
  Field field(GetParam(), {"", std::nullopt, 0});
  TransferOptions options;
  options.signal = Signal{arrival};
  auto expected = must(field.pair.to_a.expect(arrival, 1));
  cuda_sim::weft_cuda_sim_fail("cuFlushGPUDirectRDMAWrites", 1, cuda_sim::unknown_error);
  Transfer transfer = must(field.submit(Direction::write, whole(), options));
  const auto ended = expected.wait(soon());
  ASSERT_TRUE(fails_with(ended, Code::unavailable));
  EXPECT_THAT(ended.error().message(), HasSubstr("cuFlushGPUDirectRDMAWrites failed"));
  EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())))
      << "its signal was delivered to the engine";
}

/// The peer proves that the bytes have arrived (CompletionProof::received).
TEST_P(Direct, AWriteIsDoneBehindTheFlushOfThePeers) {
  for (const int gpu : {0, 1}) {
    Field field(GetParam(), {"", std::nullopt, gpu});
    field.expect_moved(Direction::write, whole());
    EXPECT_EQ(field.flushed, gpu == 0 ? 1U : 0U);
  }
  Field field(GetParam(), {"", std::nullopt, 0});
  cuda_sim::weft_cuda_sim_fail("cuFlushGPUDirectRDMAWrites", 1, cuda_sim::unknown_error);
  Transfer transfer = must(field.submit(Direction::write, whole()));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::unavailable));
}

TEST_P(Direct, AMessageComesBehindTheFlushToo) {
  Field field(GetParam(), {"", std::nullopt, 0});
  must(must(field.submit(Direction::write, whole())).wait(soon()));
  cuda_sim::weft_cuda_sim_clear();
  must(field.pair.to_b.send(1, {}, soon()));
  must(must(field.pair.to_a.receive(1, ~std::uint64_t{0})).wait(soon()));
  EXPECT_EQ(cuda_sim::counters().flushes, 1U);
}

TEST_P(Direct, WhatIsReadIsFlushedHereBeforeItIsDone) {
  for (const int gpu : {0, 1}) {
    Field field(GetParam(), {"", gpu, std::nullopt});
    field.expect_moved(Direction::read, whole());
    EXPECT_EQ(field.flushed, gpu == 0 ? 1U : 0U);
    field.expect_moved(Direction::write, whole());
    EXPECT_EQ(field.flushed, 0U) << "nothing came here";
  }
  Field field(GetParam(), {"", 0, std::nullopt});
  cuda_sim::weft_cuda_sim_fail("cuFlushGPUDirectRDMAWrites", 1, cuda_sim::unknown_error);
  Transfer transfer = must(field.submit(Direction::read, whole()));
  EXPECT_TRUE(fails_with(transfer.wait_quiescent(soon()), Code::unavailable));
}

TEST_P(Direct, AGpuThatCantBeFlushedIsStaged) {
  Field field(GetParam(), {"", 2, 1});
  const Path path = field.path();
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_THAT(path.not_used, Contains("GPUDirect: the GPU does not see what NICs write in order, "
                                      "and its driver can't flush it"));
  for (const Direction direction : both) field.expect_moved(direction, whole());
}

TEST_P(Direct, WhereOneSideIsStagedTheOtherIsToo) {
  for (const std::size_t old : {0U, 1U}) {
    SCOPED_TRACE(old);
    Nics nics = some_nics(2);
    nics[old]->device_memory = false;
    Field field(GetParam(), all_sides[0], nics);
    const Path path = field.path();
    EXPECT_EQ(path.transport, TransportKind::bounce);
    EXPECT_FALSE(path.gpudirect_local || path.gpudirect_remote);
    const std::string whose =
        old == 0 ? "GPUDirect: "
                 : "GPUDirect at the peer: none of the peer's rails has a key for it: ";
    EXPECT_THAT(path.not_used, Contains(AllOf(StartsWith(whose), HasSubstr("it is an old one"))));
    EXPECT_THAT(path.not_used,
                Contains(HasSubstr("NICs reach this side's memory, and not the other's")));
    for (const Direction direction : both) {
      const Report report = field.expect_moved(direction, whole());
      EXPECT_EQ(report.transport, TransportKind::bounce);
      EXPECT_GT(field.copied, 0U);
    }
    TransferOptions options;
    options.transport = TransportKind::one_sided;
    EXPECT_TRUE(fails_with(field.submit(Direction::write, whole(), options), Code::unsupported));
  }
}

/// The side with the CPU's memory needs no such NIC.
TEST_P(Direct, HostMemoryBehindAnOldNicIsMovedFromAndToAGpuDirectly) {
  Nics nics = some_nics(2);
  nics[0]->device_memory = false;
  Field field(GetParam(), {"", std::nullopt, 1}, nics);
  EXPECT_TRUE(field.path().gpudirect_remote);
  for (const Direction direction : both) {
    EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::one_sided);
    EXPECT_EQ(field.copied, 0U);
  }
}

TEST_P(Direct, ANicThatRefusesTheMemoryHasItStaged) {
  Nics nics = some_nics(2);
  nics[0]->refuses_dmabufs = nics[0]->refuses_pointers = true;
  Field field(GetParam(), all_sides[0], nics);
  const Path path = field.path();
  EXPECT_THAT(
      path.not_used,
      Contains("GPUDirect: by DMA buffer this NIC wants pointers; by pointer this NIC wants "
               "DMA buffers"));
  for (const Direction direction : both)
    EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::bounce);
  TransferOptions strict;
  strict.policy = Policy{.require_gpudirect = true};
  const auto refused = field.submit(Direction::write, whole(), strict);
  ASSERT_TRUE(fails_with(refused, Code::policy_refused));
  EXPECT_THAT(refused.error().message(), HasSubstr("by DMA buffer this NIC wants pointers"));
}

TEST_P(Direct, AGrantWithoutAKeyIsStaged) {
  Nics nics = some_nics(2);
  nics[1]->refuses_peers = true;
  Field field(GetParam(), all_sides[0], nics);
  const std::string why =
      "none of the peer's rails has a key for it: by DMA buffer this NIC has no room for keys; by "
      "pointer this NIC has no room for keys";
  const Path path = field.path();
  EXPECT_FALSE(path.gpudirect_remote);
  EXPECT_THAT(path.not_used, Contains("GPUDirect at the peer: " + why));
  TransferOptions strict;
  strict.policy = Policy{.require_gpudirect = true};
  const auto refused = field.submit(Direction::write, whole(), strict);
  ASSERT_TRUE(fails_with(refused, Code::policy_refused));
  EXPECT_THAT(refused.error().message(), HasSubstr(why));
  for (const Direction direction : both)
    EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::bounce);
  field.nics[1]->refuses_peers = false;
  Grant grant = must(field.remote.grant({}, Rights::write));
  Remote imported = must(field.pair.a.import(grant.blob()));
  Transfer transfer = must(field.pair.a.write(field.local, imported, whole()));
  must(transfer.wait(soon()));
  EXPECT_EQ(transfer.report().transport, TransportKind::one_sided);
}

TEST_P(Direct, WithoutDmabufsMemoryIsRegisteredByPointer) {
  const auto expect_by_pointer = [&](const Nics& nics) {
    Field field(GetParam(), all_sides[0], nics);
    for (const Direction direction : both) {
      EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::one_sided);
      EXPECT_EQ(field.copied, 0U);
    }
    EXPECT_GT(nics[0]->by_pointer, 0U);
    EXPECT_EQ(nics[0]->by_dmabuf, 0U);
  };
  {
    SCOPED_TRACE("libfabric takes none");
    Nics nics = some_nics(2);
    for (const auto& nic : nics) nic->takes_dmabufs = false;
    expect_by_pointer(nics);
  }
  {
    SCOPED_TRACE("the NIC refuses them");
    Nics nics = some_nics(2);
    for (const auto& nic : nics) nic->refuses_dmabufs = true;
    expect_by_pointer(nics);
  }
  {
    SCOPED_TRACE("the driver gives none, once");
    cuda_sim::weft_cuda_sim_fail("cuMemGetHandleForAddressRange", 1, cuda_sim::not_supported);
    expect_by_pointer(some_nics(2));
  }
}

TEST_P(Direct, NothingToRegisterByIsSaid) {
  Nics nics = some_nics(2);
  nics[0]->refuses_pointers = true;
  cuda_sim::weft_cuda_sim_fail("cuMemGetHandleForAddressRange", 1, cuda_sim::not_supported);
  Field field(GetParam(), all_sides[2], nics);
  EXPECT_THAT(field.path().not_used,
              Contains(AllOf(HasSubstr("cuMemGetHandleForAddressRange failed"),
                             HasSubstr("by pointer this NIC wants DMA buffers"))));
  field.expect_moved(Direction::write, whole());
}

// As what was mapped in parts, of which driver 580 knows no such attribute.
TEST_P(Direct, MemoryThatCantBeMadeSynchronousByItselfIsWithItsContext) {
  const cuda_sim::CurrentContext here(0);
  unsigned flags = 0;
  cuda_sim::check(cuda_sim::cuCtxGetFlags(&flags));
  ASSERT_EQ(flags & cuda_sim::context_sync_memops, 0U);
  cuda_sim::weft_cuda_sim_fail("cuPointerSetAttribute", 1, cuda_sim::not_supported);
  Field field(GetParam(), all_sides[2]);
  field.expect_moved(Direction::write, whole());
  EXPECT_GT(field.nics[0]->by_dmabuf, 0U);
  cuda_sim::check(cuda_sim::cuCtxGetFlags(&flags));
  EXPECT_NE(flags & cuda_sim::context_sync_memops, 0U);
  cuda_sim::check(cuda_sim::cuCtxSetFlags(0));
}

TEST_P(Direct, MemoryThatCantBeMadeSynchronousIsStaged) {
  cuda_sim::weft_cuda_sim_fail("cuPointerSetAttribute", 1, cuda_sim::not_supported);
  cuda_sim::weft_cuda_sim_fail("cuCtxSetFlags", 1, cuda_sim::not_supported);
  Field field(GetParam(), all_sides[2]);
  EXPECT_THAT(field.path().not_used, Contains(HasSubstr("SYNC_MEMOPS")));
  field.expect_moved(Direction::write, whole());
  EXPECT_EQ(field.nics[0]->by_dmabuf, 0U);
}

TEST_P(Direct, ManagedMemoryIsStaged) {
  Field field(GetParam(), all_sides[2]);
  const cuda_sim::CurrentContext here(0);
  const cuda_sim::ManagedMemory managed(size);
  fill(managed.bytes(), ours);
  Segment local = must(field.pair.a.add(Memory::adopt(managed.bytes().data(), size)));
  EXPECT_EQ(local.place().kind, MemoryKind::device);
  const Path path = must(field.pair.a.explain(local, field.imported, Direction::write));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_THAT(path.not_used,
              Contains(AllOf(StartsWith("GPUDirect: "), HasSubstr("NICs can't access"))));
  field.there.fill(theirs);
  must(must(field.pair.a.write(local, field.imported, whole())).wait_quiescent(soon()));
  EXPECT_TRUE(field.there.holds(theirs, landed(Direction::write, whole(), ours)));
  must(local.release(soon()));
}

TEST_P(Direct, BounceBuffersCarryTheSameMemoryWhereTheyAreAskedFor) {
  Field field(GetParam(), all_sides[0]);
  TransferOptions bounce;
  bounce.transport = TransportKind::bounce;
  for (const Direction direction : both) {
    EXPECT_EQ(field.expect_moved(direction, whole(), bounce).transport, TransportKind::bounce);
    EXPECT_GT(field.copied, 0U);
    EXPECT_EQ(field.flushed, 0U) << "no NIC has written there";
  }
}

TEST_P(Direct, OfTwoRailsTheOneThatReachesTheMemoryCarriesIt) {
  Nics nics = some_nics(4);
  nics[1]->device_memory = nics[3]->device_memory = false;
  Field field(GetParam(), all_sides[0], nics);
  EXPECT_EQ(field.path().rails.size(), 1U);
  for (const Direction direction : both) {
    const Report report = field.expect_moved(direction, whole());
    EXPECT_EQ(report.transport, TransportKind::one_sided);
    ASSERT_EQ(report.rails.size(), 1U);
    EXPECT_TRUE(report.rails[0].rail.ends_with(":0"));
    EXPECT_EQ(field.copied, 0U);
  }
}

TEST_P(Direct, ARevokedGrantsMemoryIsFree) {
  Field field(GetParam(), all_sides[0]);
  field.expect_moved(Direction::write, whole());
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
  field.there.fill(77);
  EXPECT_FALSE(field.submit(Direction::write, whole()));
  EXPECT_TRUE(field.there.holds(77));
  EXPECT_TRUE(succeeds(field.remote.release(soon())));
}

TEST_P(Direct, RevokedUnderWritesThatAreUnderWay) {
  Field field(GetParam(), all_sides[0]);
  std::vector<Transfer> transfers;
  for (int i = 0; i < 20; ++i) transfers.push_back(must(field.submit(Direction::write, whole())));
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
  field.there.fill(77);
  for (Transfer& each : transfers) static_cast<void>(each.wait_quiescent(soon()));
  EXPECT_TRUE(field.there.holds(77));
  EXPECT_TRUE(succeeds(field.remote.release(soon())));
}

TEST_P(Direct, AGrantWhoseTimeIsOverIsStale) {
  Field field(GetParam(), all_sides[0]);
  Grant brief = must(field.remote.grant({}, Rights::read_write, 50ms));
  const auto imported = field.pair.a.import(brief.blob());
  if (!imported) GTEST_SKIP() << "the machine is too slow: its time was over before";
  auto ended = Result<void>();
  const auto until = soon();
  while (ended && !until.passed()) {
    auto transfer = field.pair.a.read(field.local, *imported, whole());
    ended = transfer ? transfer->wait_quiescent(soon()) : Result<void>(fail(transfer.error()));
  }
  EXPECT_TRUE(fails_with(ended, Code::stale));
}

TEST_P(Direct, LeavesNothingBehind) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd"), end;
    return std::distance(all, end);
  };
  {
    Field first(GetParam(), all_sides[0]);
    first.expect_moved(Direction::write, whole());
  }
  const auto regions = cuda_sim::weft_cuda_sim_regions();
  const auto open = descriptors();
  for (int i = 0; i < 3; ++i) {
    Field field(GetParam(), all_sides[0]);
    field.expect_moved(Direction::write, whole());
    must(field.grant.revoke(soon()));
    must(field.local.release(soon()));
    must(field.remote.release(soon()));
  }
  EXPECT_EQ(cuda_sim::weft_cuda_sim_regions(), regions);
  EXPECT_EQ(descriptors(), open);
}

/// The rails of one of the engines, each of which has another address then.
Result<void> reopen(Engine& engine) {
  for (const auto& rail : engine.info().rails)
    if (auto reopened = engine.reopen(rail.name, soon()); !reopened) return reopened;
  return {};
}

constexpr auto pointers_wanted = "this NIC wants pointers";

TEST_P(Direct, ARailThatIsOpenedAgainStillReachesTheMemory) {
  Field field(GetParam(), all_sides[0]);
  for (Engine* engine : {&field.pair.a, &field.pair.b}) {
    if (const auto reopened = reopen(*engine); !reopened) {
      EXPECT_TRUE(fails_with(reopened, Code::unsupported));
      return;
    }
    for (const Direction direction : both) {
      EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::one_sided);
      EXPECT_EQ(field.copied, 0U);
    }
  }
}

/// What is moved goes through the bounce-buffer transport, as does a list to write all that was
/// prepared before.
void expect_staged(Field& field, const Prepared& before) {
  for (const Direction direction : both)
    EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::bounce);
  field.paint();
  Transfer transfer = must(field.pair.a.submit(before));
  must(transfer.wait_quiescent(soon()));
  EXPECT_EQ(transfer.report().transport, TransportKind::bounce);
  EXPECT_TRUE(field.there.holds(theirs, landed(Direction::write, whole(), ours)));
}

TEST_P(Direct, ARailThatLosesTheMemoryWhenItIsOpenedAgainStagesIt) {
  Field field(GetParam(), all_sides[0]);
  const Prepared before =
      must(field.pair.a.prepare(field.local, field.imported, Direction::write, whole()));
  field.expect_moved(Direction::write, whole());
  field.nics[0]->refuses_dmabufs = true;
  if (!reopen(field.pair.a)) GTEST_SKIP() << "it does not reopen";
  const Path path = field.path();
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_THAT(path.not_used,
              Contains(AllOf(StartsWith("GPUDirect: "), HasSubstr(pointers_wanted))));
  expect_staged(field, before);
  // It stays staged, as the grants of it are; other memory is not.
  field.nics[0]->refuses_dmabufs = false;
  must(reopen(field.pair.a));
  EXPECT_EQ(field.expect_moved(Direction::read, whole()).transport, TransportKind::bounce);
  must(field.local.release(soon()));
  field.local = must(field.pair.a.add(field.here.memory()));
  EXPECT_EQ(field.expect_moved(Direction::read, whole()).transport, TransportKind::one_sided);
}

/// They end, whatever comes of them, and the next one gets through.
TEST_P(Direct, TransfersUnderWayWhenTheMemoryIsLostEnd) {
  for (const std::size_t loser : {0U, 1U}) {
    SCOPED_TRACE(loser);
    Field field(GetParam(), all_sides[0]);
    std::vector<Transfer> transfers;
    for (int i = 0; i < 20; ++i) transfers.push_back(must(field.submit(Direction::write, whole())));
    field.nics[loser]->refuses_dmabufs = true;
    if (!reopen(loser == 0 ? field.pair.a : field.pair.b)) GTEST_SKIP() << "it does not reopen";
    for (Transfer& each : transfers) {
      const auto ended = each.wait_quiescent(soon());
      EXPECT_TRUE(each.quiescent());
      EXPECT_TRUE(ended || ended.error().code() == Code::fabric_failed);
    }
    for (const Direction direction : both)
      EXPECT_EQ(field.expect_moved(direction, whole()).transport, TransportKind::bounce);
    // Where keys don't fence, bytes of a write that failed may still be on their way.
    const Revoked revoked = must(field.grant.revoke(soon()));
    EXPECT_TRUE(revoked == Revoked::quiescent || !keys_fence(field.pair.b));
    if (revoked == Revoked::quarantined) must(reopen(field.pair.b));
    EXPECT_TRUE(succeeds(field.remote.release(soon())));
  }
}

TEST_P(Direct, AGrantThatLosesItsKeyIsStagedWithoutBeingImportedAgain) {
  Field field(GetParam(), all_sides[0]);
  const Blob blob_before = field.grant.blob();
  const Prepared before =
      must(field.pair.a.prepare(field.local, field.imported, Direction::write, whole()));
  field.expect_moved(Direction::write, whole());
  field.nics[1]->refuses_peers = true;
  if (!reopen(field.pair.b)) GTEST_SKIP() << "it does not reopen";
  const std::string why = "GPUDirect at the peer: none of the peer's rails has a key for it: ";
  EXPECT_THAT(field.path().not_used,
              Contains(AllOf(StartsWith(why), HasSubstr("this NIC has no room for keys"))));
  expect_staged(field, before);
  // Whoever imports it only now hears it too, whether the blob is of before or not.
  Engine later = must(Engine::open(direct_config(GetParam(), 1)));
  acquaint(later, field.pair.b);
  Store stored(std::nullopt, size);
  const Segment local = must(later.add(stored.memory()));
  for (const Blob& blob : {blob_before, field.grant.blob()}) {
    const Remote imported = must(later.import(blob));
    const Path path = must(later.explain(local, imported, Direction::read));
    EXPECT_EQ(path.transport, TransportKind::bounce);
    EXPECT_THAT(path.not_used, Contains(HasSubstr("this NIC has no room for keys")));
    must(must(later.read(local, imported, whole())).wait_quiescent(soon()));
  }
  EXPECT_TRUE(stored.holds(0, landed(Direction::read, whole(), ours)));
  EXPECT_EQ(must(field.grant.revoke(soon())), Revoked::quiescent);
  EXPECT_TRUE(succeeds(field.remote.release(soon())));
}

INSTANTIATE_TEST_SUITE_P(All, Direct, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
