// Managed memory (cuMemAllocManaged), which the CPU and GPUs both get at. To Weft it is its GPU's:
// staged, and neither lent nor given to NICs.
#include <gmock/gmock.h>

#include "field.hpp"

namespace weft::test {
namespace {

using Move = weft::Direction;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t bytes = 9 * chunk + 13;

class Managed : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    keep_primary(0);
    here.emplace(0);
    mine.emplace(bytes);
  }
  Segment add(Engine& engine, std::span<std::byte> memory) {
    return must(engine.add(Memory::adopt(memory.data(), memory.size())));
  }
  /// Moves the pieces with hashes at both ends, and looks at every byte by the CPU.
  void expect_moved(Engine& engine, const Segment& local, const Remote& remote,
                    std::span<std::byte> theirs, Move direction, std::span<const Pair> pairs) {
    const std::span<std::byte> ours = mine->bytes();
    fill(ours, 1);
    fill(theirs, 2);
    const bool write = direction == Move::write;
    const Blob expected = write ? expected_after(theirs, ours, direction, pairs)
                                : expected_after(ours, theirs, direction, pairs);
    TransferOptions options;
    options.verify = true;
    Transfer transfer = must(write ? engine.write(local, remote, pairs, options)
                                   : engine.read(local, remote, pairs, options));
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    EXPECT_EQ(transfer.report().transport, TransportKind::bounce);
    EXPECT_TRUE(same_bytes(write ? theirs : ours, expected));
    EXPECT_TRUE(holds(write ? ours : theirs, write ? 1 : 2));
  }
  void expect_all_moved(Engine& engine, const Segment& local, const Remote& remote,
                        std::span<std::byte> theirs) {
    const std::vector<std::vector<Pair>> shapes = {
        {{bytes - 1, 0, 1}}, whole(bytes), {{3, 5, chunk + 1}, {8 * chunk, 2 * chunk + 7, chunk}}};
    for (const Move direction : {Move::write, Move::read})
      for (const auto& pairs : shapes)
        expect_moved(engine, local, remote, theirs, direction, pairs);
  }

  std::optional<cuda_sim::CurrentContext> here;
  std::optional<cuda_sim::ManagedMemory> mine;
};

TEST_P(Managed, EveryByteArrivesInTheCpusMemory) {
  Couple pair = couple(gpu_config(GetParam()));
  Segment local = add(pair.a, mine->bytes());
  EXPECT_EQ(local.place().kind, MemoryKind::device);
  EXPECT_EQ(local.data(), nullptr) << "the core does not touch it";
  Blob theirs(bytes);
  Segment remote = add(pair.b, theirs);
  Grant grant = must(remote.grant({}, Rights::read_write));
  const Remote imported = must(pair.a.import(grant.blob()));
  const Path path = must(pair.a.explain(local, imported, Move::write));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_EQ(path.hops.front().by, Mover::copy_engine);
  expect_all_moved(pair.a, local, imported, theirs);
  must(local.release(soon()));
  must(remote.release(soon()));
}

TEST_P(Managed, EveryByteArrivesInAnothersAndNothingIsLent) {
  Couple pair = couple(gpu_config(GetParam()));
  Segment local = add(pair.a, mine->bytes());
  const cuda_sim::ManagedMemory theirs(bytes);
  Segment remote = add(pair.b, theirs.bytes());
  Grant grant = must(remote.grant({}, Rights::read_write));
  const Remote imported = must(pair.a.import(grant.blob()));
  const Path path = must(pair.a.explain(local, imported, Move::write));
  EXPECT_EQ(path.transport, TransportKind::bounce);
  EXPECT_THAT(path.not_used, Contains(testing::AllOf(HasSubstr("from GPU to GPU: "),
                                                     HasSubstr("cuIpcGetMemHandle"))));
  expect_all_moved(pair.a, local, imported, theirs.bytes());
  EXPECT_EQ(must(grant.revoke(soon())), Revoked::quiescent);
  must(local.release(soon()));
  must(remote.release(soon()));
}

INSTANTIATE_TEST_SUITE_P(All, Managed, testing::ValuesIn(all_providers()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace weft::test
