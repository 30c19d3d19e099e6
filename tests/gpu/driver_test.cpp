// What Weft asks of a CUDA driver, step by step, over whichever the loader finds: streams that wait
// for signals, hashes, memory of all kinds, what NICs would be given. Two engines of one process.
#include <unistd.h>

#include <memory>
#include <vector>

#include "device/cuda/gpu.hpp"
#include "engines.hpp"
#include "store.hpp"

namespace weft::test {
namespace {

using core::cuda::Gpu;

constexpr std::size_t bytes = 3'000'001;
constexpr std::uint64_t ours = 1, theirs = 2;

/// Memory of this side, granted memory of the other.
struct Field {
  Field(const std::string& provider, Memory local_memory, Memory remote_memory)
      : pair(couple(config_for(provider), config_for(provider))),
        local(must(pair.a.add(local_memory))),
        remote(must(pair.b.add(remote_memory))),
        grant(must(remote.grant({}, Rights::read_write))),
        imported(must(pair.a.import(grant.blob()))) {}
  ~Field() {
    EXPECT_TRUE(succeeds(local.release(soon())));
    EXPECT_TRUE(succeeds(remote.release(soon())));
  }
  Transfer start(Direction direction, std::span<const Pair> pairs,
                 const TransferOptions& options = {}) {
    return must(direction == Direction::write ? pair.a.write(local, imported, pairs, options)
                                              : pair.a.read(local, imported, pairs, options));
  }

  Couple pair;
  Segment local, remote;
  Grant grant;
  Remote imported;
};

class Driver : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_GT(gpus(), 0); }
};

constexpr std::optional<int> the_gpu = 0, the_cpu = std::nullopt;

/// Both ways, with hashes at both ends, and every byte of both sides afterwards.
void expect_verified(const std::string& provider, Store& here, Store& there) {
  Field field(provider, here.memory(), there.memory());
  const Pair pieces[] = {{1, 3, 1}, {4096, 70'000, 2'000'000}, {2'500'000, 5, 4096}};
  for (const Direction direction : {Direction::write, Direction::read}) {
    here.fill(ours);
    there.fill(theirs);
    TransferOptions options;
    options.verify = true;
    Transfer transfer = field.start(direction, pieces, options);
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
    const bool write = direction == Direction::write;
    const auto moved = landed(direction, pieces, write ? ours : theirs);
    const std::vector<Landed> none;
    EXPECT_TRUE(here.holds(ours, write ? none : moved));
    EXPECT_TRUE(there.holds(theirs, write ? moved : none));
  }
}

TEST_P(Driver, HashesMemoryAtBothEnds) {
  for (const auto& [one, other] :
       {std::pair(the_gpu, the_gpu), std::pair(the_gpu, the_cpu), std::pair(the_cpu, the_gpu)}) {
    Store here(one, bytes), there(other, bytes);
    expect_verified(GetParam(), here, there);
  }
}

/// As caching allocators have it that map what they need behind what they have (PyTorch's
/// "expandable segments").
TEST_P(Driver, TakesMemoryThatIsMappedInParts) {
  if (!MappedMemory::offered()) GTEST_SKIP() << "this driver maps no memory in parts";
  Store here = Store::in_parts(bytes), there = Store::in_parts(bytes);
  Store host(the_cpu, bytes), gpu(the_gpu, bytes);
  expect_verified(GetParam(), here, there);
  expect_verified(GetParam(), here, host);
  expect_verified(GetParam(), gpu, here);
}

TEST_P(Driver, RefusesMemoryThatIsNotMappedToItsEnd) {
  if (!MappedMemory::offered()) GTEST_SKIP() << "this driver maps no memory in parts";
  const cuda_sim::CurrentContext context;
  MappedMemory memory(bytes);
  Engine engine = must(Engine::open(config_for(GetParam())));
  Segment all = must(engine.add(Memory::adopt(memory.pointer(), memory.mapped())));
  EXPECT_TRUE(succeeds(all.release(soon())));
  EXPECT_TRUE(fails_with(engine.add(Memory::adopt(memory.pointer(), memory.mapped() + 1)),
                         Code::invalid_argument));
}

/// In mode global, the strictest one: unsafe calls of any thread would break it, and fail.
TEST_P(Driver, ACaptureGoesOnWhileTransfersRunAndPeersAreMet) {
  Store here(the_gpu, bytes), there(the_gpu, bytes);
  here.fill(ours);
  there.fill(theirs);
  const cuda_sim::OwnedStream stream;
  cuda_sim::check(cuda_sim::cuStreamBeginCapture_v2(stream, cuda_sim::capture_global));
  {
    Field field(GetParam(), here.memory(), there.memory());
    const Pair all[] = {{0, 0, bytes}};
    EXPECT_TRUE(succeeds(field.start(Direction::write, all).wait_quiescent(soon())));
  }
  cuda_sim::Graph graph = nullptr;
  cuda_sim::check(cuda_sim::cuStreamEndCapture(stream, &graph));
  cuda_sim::check(cuda_sim::cuGraphDestroy(graph));
  EXPECT_TRUE(there.holds(ours));
}

/// On a stream of the receiver's what a signal announces is copied to somewhere else.
class Consumer {
 public:
  Consumer(std::size_t length, cuda_sim::Stream stream) : stream_(stream), result_(length) {}
  ~Consumer() { cuda_sim::cuStreamSynchronize(stream_); }
  NotifyOptions after() const {
    NotifyOptions options;
    options.gpu_stream = stream_;
    return options;
  }
  void consume(cuda_sim::Address from) {
    cuda_sim::check(cuda_sim::cuMemcpyAsync(result_.address(), from, result_.size(), stream_));
  }
  testing::AssertionResult got(std::uint64_t seed, std::uint64_t offset = 0) {
    cuda_sim::check(cuda_sim::cuStreamSynchronize(stream_));
    return result_.holds(seed, offset);
  }

 private:
  const cuda_sim::Stream stream_;
  const cuda_sim::DeviceMemory result_;
};

TEST_P(Driver, AStreamGoesOnWhenItsSignalHasCome) {
  constexpr std::size_t layer_bytes = 100'001;
  Store here(the_cpu, layer_bytes), there(the_gpu, layer_bytes);
  Field field(GetParam(), here.memory(), there.memory());
  const cuda_sim::OwnedStream stream;
  Consumer consumer(layer_bytes, stream);
  const Pair all[] = {{0, 0, layer_bytes}};
  for (std::uint64_t round = 0; round < 300; ++round) {  // more than there are words at a time
    here.fill(100 + round);
    Expectation expected = must(field.pair.to_a.expect(7, 1, consumer.after()));
    consumer.consume(there.device_address());
    TransferOptions options;
    options.signal = Signal{7};
    Transfer transfer = field.start(Direction::write, all, options);
    ASSERT_TRUE(consumer.got(100 + round));
    ASSERT_TRUE(succeeds(expected.wait(soon())));
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  }
}

/// As many as may: they must not keep Weft's own streams from filling the memory that they wait
/// for. Copies as short as these go the way that the applications' kernels go.
TEST_P(Driver, SevenStreamsWaitForLayerAfterLayer) {
  constexpr std::size_t streams = 7, layers = 14 * streams, layer_bytes = 4096;
  Store here(the_cpu, layers * layer_bytes), there(the_gpu, layers * layer_bytes);
  Field field(GetParam(), here.memory(), there.memory());
  here.fill(ours);
  there.fill(theirs);
  const std::vector<cuda_sim::OwnedStream> shared(streams);
  std::vector<std::unique_ptr<Consumer>> consumers;  // of a layer each, on the streams in turn
  for (std::uint64_t layer = 0; layer < layers; ++layer)
    consumers.push_back(std::make_unique<Consumer>(layer_bytes, shared[layer % streams]));
  std::vector<Expectation> expected;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    NotifyOptions options = consumers[layer]->after();
    options.deadline = Deadline::in(15s);
    expected.push_back(must(field.pair.to_a.expect(layer, 1, options)));
    consumers[layer]->consume(there.device_address() + layer * layer_bytes);
  }
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const Pair piece[] = {{layer * layer_bytes, layer * layer_bytes, layer_bytes}};
    TransferOptions options;
    options.signal = Signal{layer};
    options.deadline = Deadline::in(10s);
    Transfer transfer = field.start(Direction::write, piece, options);
    ASSERT_TRUE(succeeds(transfer.wait_quiescent(soon()))) << "layer " << layer;
    ASSERT_TRUE(succeeds(expected[layer].wait(soon()))) << "layer " << layer;
  }
  for (std::uint64_t layer = 0; layer < layers; ++layer)
    ASSERT_TRUE(consumers[layer]->got(ours, layer * layer_bytes)) << "layer " << layer;
}

TEST_P(Driver, AStreamGoesOnThoughNothingComes) {
  Store here(the_cpu, bytes), there(the_gpu, bytes);
  there.fill(theirs);
  Field field(GetParam(), here.memory(), there.memory());
  const cuda_sim::OwnedStream stream;
  Consumer consumer(bytes, stream);
  NotifyOptions options = consumer.after();
  options.deadline = Deadline::in(50ms);
  Expectation expected = must(field.pair.to_a.expect(7, 1, options));
  consumer.consume(there.device_address());
  EXPECT_TRUE(consumer.got(theirs));
  EXPECT_TRUE(fails_with(expected.wait(soon()), Code::timed_out));
}

INSTANTIATE_TEST_SUITE_P(Gpu, Driver, testing::ValuesIn(all_providers()),
                         [](const auto& which) { return name_of(which.param); });

/// What an engine gives NICs that reach the GPU's memory.
class ForNics : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GT(gpus(), 0); }
};

TEST_F(ForNics, MemoryIsExportedAndFlushed) {
  const cuda_sim::CurrentContext context;
  const cuda_sim::DeviceMemory memory(bytes);
  const Gpu* const gpu = must(Gpu::of(memory.pointer(), bytes));
  ASSERT_NE(gpu, nullptr);
  if (const auto can = gpu->check_gpudirect(); !can) GTEST_SKIP() << can.error().message();
  EXPECT_TRUE(succeeds(gpu->sync_memops(memory.pointer(), bytes)));
  if (gpu->needs_flush()) {
    EXPECT_TRUE(succeeds(gpu->flush()));
  }
  const auto exported = gpu->export_dmabuf(memory.pointer() + 5, bytes - 5);
  if (!exported && exported.error().code() == Code::unsupported)
    GTEST_SKIP() << exported.error().message();
  ASSERT_TRUE(succeeds(exported));
  const auto& dmabuf = **exported;
  const auto before = static_cast<std::size_t>(memory.pointer() + 5 - dmabuf.base);
  EXPECT_GE(lseek(dmabuf.descriptor.get(), 0, SEEK_END), static_cast<off_t>(before + bytes - 5));
}

}  // namespace
}  // namespace weft::test
