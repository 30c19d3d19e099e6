// Two processes, one or both with its memory in a GPU: every byte that moves, and those around it.
// Over NVIDIA's driver or the stand-in, whichever the loader finds; staged, or by NICs.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "direct_nic.hpp"
#include "owner.hpp"

namespace weft::test {
namespace {

constexpr std::size_t size = 5'500'001;
constexpr std::uint64_t ours = 1, theirs = 2;

using Where = std::tuple<std::string, Sides>;

class Processes : public testing::TestWithParam<Where> {
 protected:
  static void SetUpTestSuite() { use_direct_nics_if_asked(); }
  void TearDown() override {
    EXPECT_TRUE(succeeds(segment_.release(soon())));
    owner_.end();
  }
  static const std::string& provider() { return std::get<0>(GetParam()); }
  static const Sides& sides() { return std::get<1>(GetParam()); }

  void paint() {
    store_.fill(ours);
    owner_.fill(theirs);
  }
  /// Waits, and compares both memories with what they should be since paint().
  void expect_moved(Transfer transfer, Direction direction, std::span<const Pair> pairs) {
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    const Report report = transfer.report();
    EXPECT_EQ(report.bytes_done, report.bytes);
    EXPECT_EQ(report.transport, transport());
    const bool write = direction == Direction::write;
    const auto pieces = landed(direction, pairs, write ? ours : theirs);
    const std::vector<Landed> none;
    EXPECT_TRUE(owner_.holds(theirs, write ? pieces : none));
    EXPECT_TRUE(store_.holds(ours, write ? none : pieces));
  }
  void move(Direction direction, std::span<const Pair> pairs) {
    paint();
    expect_moved(
        must(direction == Direction::write ? engine_.write(segment_, remote_, pairs, way())
                                           : engine_.read(segment_, remote_, pairs, way())),
        direction, pairs);
  }
  /// By NICs that reach the GPUs' memory instead of the bounce-buffer transport, if the environment
  /// variable WEFT_TEST_GPUDIRECT is set; never by a better way than this.
  static TransportKind transport() {
    const char* const asked = std::getenv("WEFT_TEST_GPUDIRECT");
    const bool by_nics = asked != nullptr && *asked != '\0';
    const TransportKind transport = sides().transport;
    return by_nics && transport == TransportKind::bounce ? TransportKind::one_sided : transport;
  }
  static TransferOptions way() {
    TransferOptions options;
    options.transport = transport();
    return options;
  }

  Owner owner_{provider(), sides().remote_gpu, size};
  Store store_{sides().local_gpu ? std::optional(0) : std::nullopt, size};
  Engine engine_ = must(Engine::open(config_for(provider())));
  Remote remote_ = owner_.meet(engine_);
  Segment segment_ = must(engine_.add(store_.memory()));
};

constexpr Direction both[] = {Direction::write, Direction::read};

TEST_P(Processes, MemoryIsTakenForWhatItIs) {
  EXPECT_EQ(segment_.place().kind, sides().local_gpu ? MemoryKind::device : MemoryKind::host);
  EXPECT_EQ(remote_.place().kind, sides().remote_gpu ? MemoryKind::device : MemoryKind::host);
}

TEST_P(Processes, AllOfIt) {
  const Pair all[] = {{0, 0, size}};
  for (const Direction direction : both) move(direction, all);
}

TEST_P(Processes, PiecesOfAllLengths) {
  // Both sides in turn, a byte apart: what lies between stays as it is.
  std::vector<Pair> pairs;
  std::uint64_t at = 5;
  for (std::uint64_t length = 1; at + 2 * length < size; length = length * 3 / 2 + 1) {
    pairs.push_back({at + 1, at, length});
    at += 2 * length;
  }
  for (const Direction direction : both) move(direction, pairs);
}

TEST_P(Processes, PagesInAnyOrder) {
  constexpr std::uint64_t page = 32 << 10, padding = 100;
  constexpr std::uint32_t pages = 80;  // more than the buffers of both rails hold
  std::vector<std::uint32_t> here(2 * pages), there(2 * pages);
  std::iota(here.begin(), here.end(), 0);
  std::iota(there.begin(), there.end(), 0);
  std::mt19937 random(7);
  std::shuffle(here.begin(), here.end(), random);
  std::shuffle(there.begin(), there.end(), random);
  const Paged list{
      page, 3, page + padding, 4096, page, {here.data(), pages}, {there.data(), pages}};
  std::vector<Pair> pairs;
  for (std::uint32_t i = 0; i < pages; ++i)
    pairs.push_back({3 + here[i] * (page + padding), 4096 + there[i] * page, page});
  for (const Direction direction : both) {
    paint();
    const Prepared prepared = must(engine_.prepare(segment_, remote_, direction, list));
    expect_moved(must(engine_.submit(prepared, way())), direction, pairs);
  }
}

TEST_P(Processes, ASignalComesOnceTheBytesAreThere) {
  const Pair all[] = {{0, 0, size}};
  for (int round = 0; round < 5; ++round) {
    paint();
    TransferOptions options = way();
    options.signal = Signal{arrival};
    Transfer transfer = must(engine_.write(segment_, remote_, all, options));
    // Looks as soon as the signal is there, which this side does not wait for.
    EXPECT_TRUE(owner_.holds(theirs, landed(Direction::write, all, ours), 1));
    EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  }
}

/// Those with a GPU on this side.
class Streams : public Processes {};

TEST_P(Streams, WhatTheyStillDoIsWaitedFor) {
  const cuda_sim::PinnedMemory fresh(size);
  const cuda_sim::OwnedStream stream;
  const cuda_sim::OwnedEvent event;
  const Pair all[] = {{0, 0, size}};
  for (std::uint64_t seed = 11; seed < 16; ++seed) {
    paint();
    fill(fresh.bytes(), seed);
    cuda_sim::check(
        cuda_sim::cuMemcpyAsync(store_.device_address(), fresh.address(), size, stream));
    cuda_sim::check(cuda_sim::cuEventRecord(event, stream));
    TransferOptions options = way();
    options.after_gpu_event = cuda_sim::Event(event);
    Transfer transfer = must(engine_.write(segment_, remote_, all, options));
    EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    EXPECT_TRUE(owner_.holds(theirs, landed(Direction::write, all, seed)));
  }
}

/// Between two GPUs, over shm, with an owner in namespaces of its own. Its report, or none where
/// the system allows no namespaces.
std::optional<Report> moved_apart(int namespaces) {
  Owner owner("shm", true, size, namespaces);
  if (!owner.begins()) return std::nullopt;
  Store store(0, size);
  Engine engine = must(Engine::open(config_for("shm")));
  const Remote remote = owner.meet(engine);
  Segment segment = must(engine.add(store.memory()));
  store.fill(ours);
  owner.fill(theirs);
  const Pair all[] = {{0, 0, size}};
  Transfer transfer = must(engine.write(segment, remote, all));
  EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_TRUE(owner.holds(theirs, landed(Direction::write, all, ours)));
  EXPECT_TRUE(succeeds(segment.release(soon())));
  owner.end();
  return transfer.report();
}

TEST(OtherNamespaces, GpuMemoryIsLentWithinOnePidNamespace) {
  const auto report = moved_apart(CLONE_NEWUSER | CLONE_NEWIPC);
  if (!report) GTEST_SKIP() << "no namespaces";
  EXPECT_EQ(report->transport, TransportKind::device_copy) << report->fallback;
}

TEST(OtherNamespaces, GpuMemoryIsStagedBetweenPidNamespaces) {
  const auto report = moved_apart(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC);
  if (!report) GTEST_SKIP() << "no namespaces";
  EXPECT_EQ(report->transport, TransportKind::bounce);
  EXPECT_NE(report->fallback.find("pid namespace"), std::string::npos) << report->fallback;
}

std::string name_of_where(const testing::TestParamInfo<Where>& which) {
  return name_of(std::get<0>(which.param)) + '_' + std::get<1>(which.param).name;
}

INSTANTIATE_TEST_SUITE_P(Gpu, Processes,
                         testing::Combine(testing::ValuesIn(all_providers()),
                                          testing::Values(gpu_to_gpu, gpu_lent, gpu_to_host,
                                                          host_to_gpu)),
                         name_of_where);
INSTANTIATE_TEST_SUITE_P(Gpu, Streams,
                         testing::Combine(testing::ValuesIn(all_providers()),
                                          testing::Values(gpu_to_gpu, gpu_lent, gpu_to_host)),
                         name_of_where);

}  // namespace
}  // namespace weft::test
