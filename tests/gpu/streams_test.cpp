// Streams of the application's that wait for what comes from a peer, without anybody's help.
#include <gmock/gmock.h>

#include "field.hpp"

namespace weft::test {
namespace {

using Move = weft::Direction;
using testing::HasSubstr;

constexpr std::uint64_t layer = 7;

/// A stream of the receiver's, on which what has come is copied to somewhere else.
class Consumer {
 public:
  explicit Consumer(Store& from) : from_(from) {}
  ~Consumer() { cuda_sim::cuStreamSynchronize(stream_); }
  NotifyOptions after() const {
    NotifyOptions options;
    options.gpu_stream = static_cast<cuda_sim::Stream>(stream_);
    return options;
  }
  void consume() {
    cuda_sim::check(cuda_sim::cuMemcpyAsync(
        result_.address(), reinterpret_cast<cuda_sim::Address>(from_.address()), chunk, stream_));
  }
  bool idle() const { return cuda_sim::cuStreamQuery(stream_) == cuda_sim::success; }
  Blob result() {
    cuda_sim::check(cuda_sim::cuStreamSynchronize(stream_));
    return result_.read();
  }

 private:
  Store& from_;
  const cuda_sim::CurrentContext here_{1};
  const cuda_sim::OwnedStream stream_;
  const cuda_sim::DeviceMemory result_{chunk};
};

class WaitingStreams : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { cuda_sim::weft_cuda_sim_clear(); }
  void write_with_signal(Field& field) {
    TransferOptions options;
    options.signal = Signal{layer};
    EXPECT_TRUE(succeeds(field.start(Move::write, whole(chunk), options).wait(soon())));
  }
  Config config = gpu_config(GetParam());
};

TEST_P(WaitingStreams, GoOnWhenTheSignalHasCome) {
  Field field(config, all_sides[0], chunk);
  Consumer consumer(field.there);
  for (int round = 0; round < 300; ++round) {  // more than there are words at a time
    const Blob fresh = pattern(chunk, 100 + static_cast<std::uint64_t>(round));
    field.here.put(fresh);
    Expectation expected = must(field.pair.to_a.expect(layer, 1, consumer.after()));
    consumer.consume();
    EXPECT_FALSE(consumer.idle());
    write_with_signal(field);
    ASSERT_TRUE(same_bytes(consumer.result(), fresh));
    ASSERT_TRUE(succeeds(expected.wait(soon())));
  }
}

TEST_P(WaitingStreams, WaitForSeveralSignalsEach) {
  Field field(config, all_sides[0], chunk);
  Consumer first(field.there), second(field.there);
  Expectation one = must(field.pair.to_a.expect(1, 2, first.after()));
  Expectation other = must(field.pair.to_a.expect(2, 1, second.after()));
  first.consume();
  second.consume();
  must(field.pair.to_b.signal({2}, soon()));
  must(other.wait(soon()));
  second.result();
  must(field.pair.to_b.signal({1}, soon()));
  EXPECT_FALSE(first.idle());
  must(field.pair.to_b.signal({1}, soon()));
  must(one.wait(soon()));
  first.result();
}

TEST_P(WaitingStreams, WaitByAFunctionWhereTheyCanNotByAWord) {
  Field field(config, all_sides[0], chunk);
  Consumer consumer(field.there);
  cuda_sim::weft_cuda_sim_fail("cuStreamWaitValue64_v2", 1, cuda_sim::not_supported);
  Expectation expected = must(field.pair.to_a.expect(layer, 1, consumer.after()));
  consumer.consume();
  EXPECT_FALSE(consumer.idle());
  write_with_signal(field);
  EXPECT_TRUE(same_bytes(consumer.result(), field.here.bytes()));
  must(expected.wait(soon()));
}

TEST_P(WaitingStreams, GoOnThoughNothingComes) {
  Field field(config, all_sides[0], chunk);
  const auto expect = [&](const NotifyOptions& options) {
    return must(field.pair.to_a.expect(layer, 1, options));
  };
  {
    Consumer overdue(field.there);
    NotifyOptions options = overdue.after();
    options.deadline = Deadline::in(50ms);
    Expectation expected = expect(options);
    overdue.consume();
    overdue.result();
    EXPECT_TRUE(fails_with(expected.wait(soon()), Code::timed_out));
    // What comes too late is for the next one.
    must(field.pair.to_b.signal({layer}, soon()));
    must(must(field.pair.to_a.expect(layer, 1)).wait(soon()));
    EXPECT_TRUE(fails_with(expected.wait(soon()), Code::timed_out));
  }
  {
    Consumer unwanted(field.there);
    {
      const Expectation expected = expect(unwanted.after());
      unwanted.consume();
    }
    unwanted.result();
  }
  Consumer bereft(field.there);
  Expectation expected = expect(bereft.after());
  bereft.consume();
  must(field.pair.a.close(soon()));
  bereft.result();
  EXPECT_TRUE(fails_with(expected.wait(soon()), Code::peer_down));
}

TEST_P(WaitingStreams, GoOnWhenTheirEngineCloses) {
  Field field(config, all_sides[0], chunk);
  Consumer consumer(field.there);
  Expectation expected = must(field.pair.to_a.expect(layer, 1, consumer.after()));
  consumer.consume();
  must(field.pair.b.close(soon()));
  consumer.result();
  EXPECT_FALSE(expected.wait(soon()));
}

// A GPU takes the work of a process through eight queues, if nothing else is said.
TEST_P(WaitingStreams, LeaveTheGpuAQueueForAllElse) {
  Field field(config, all_sides[0], chunk);
  const auto expect = [&](Consumer& consumer, std::uint64_t id) {
    return field.pair.to_a.expect(id, 1, consumer.after());
  };
  std::vector<std::unique_ptr<Consumer>> consumers;
  std::vector<Expectation> expected;
  for (std::uint64_t i = 0; i < 8; ++i)
    consumers.push_back(std::make_unique<Consumer>(field.there));
  for (std::uint64_t i = 0; i < 7; ++i) expected.push_back(must(expect(*consumers[i], i)));
  const auto refused = expect(*consumers[7], 7);
  ASSERT_TRUE(fails_with(refused, Code::queue_full));
  EXPECT_THAT(refused.error().message(), HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS"));
  // Those that wait already may wait for more.
  for (std::uint64_t i = 10; i < 30; ++i) expected.push_back(must(expect(*consumers[0], i)));
  EXPECT_TRUE(fails_with(expect(*consumers[7], 7), Code::queue_full));
  // Of the streams that wait no more the place is free.
  must(field.pair.to_b.signal({3}, soon()));
  must(expected[3].wait(soon()));
  expected.push_back(must(expect(*consumers[7], 7)));
  EXPECT_TRUE(fails_with(expect(*consumers[3], 3), Code::queue_full));
  expected.clear();
  for (std::uint64_t i = 0; i < 7; ++i) expected.push_back(must(expect(*consumers[i], i)));
}

TEST_P(WaitingStreams, OfNobodyAreRefused) {
  Field field(config, all_sides[0], chunk);
  int nothing = 0;
  NotifyOptions options;
  options.gpu_stream = &nothing;
  const auto refused = field.pair.to_a.expect(layer, 1, options);
  ASSERT_TRUE(fails_with(refused, Code::unavailable));
  EXPECT_THAT(refused.error().message(), HasSubstr("cuStreamGetCtx failed"));
}

INSTANTIATE_TEST_SUITE_P(Gpu, WaitingStreams, testing::ValuesIn(all_providers()),
                         [](const auto& which) { return name_of(which.param); });

}  // namespace
}  // namespace weft::test
