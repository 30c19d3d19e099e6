// The application captures CUDA graphs while Weft works: neither disturbs the other. Both engines
// are in this process, over the stand-in driver.
#include <gmock/gmock.h>

#include <future>

#include "field.hpp"

namespace weft::test {
namespace {

enum class By { this_thread, another_thread };

/// A capture in mode global, under way for as long as it lives: the strictest one, and the default.
class Capturing {
 public:
  explicit Capturing(By by) {
    if (by == By::this_thread)
      begin();
    else
      ended_ = std::async(std::launch::async, [this] {
        begin();
        begun_.set_value();
        finish_.get_future().wait();
        return end();
      });
    if (ended_.valid()) begun_.get_future().wait();
  }
  ~Capturing() { finish(); }
  /// The driver's answer.
  cuda_sim::Status finish() {
    if (std::exchange(over_, true)) return cuda_sim::success;
    if (!ended_.valid()) return end();
    finish_.set_value();
    return ended_.get();
  }

 private:
  void begin() {
    context_.emplace();
    stream_.emplace();
    cuda_sim::check(cuda_sim::cuStreamBeginCapture_v2(*stream_, cuda_sim::capture_global));
  }
  cuda_sim::Status end() {
    cuda_sim::Graph graph = nullptr;
    const auto status = cuda_sim::cuStreamEndCapture(*stream_, &graph);
    if (graph != nullptr) cuda_sim::cuGraphDestroy(graph);
    stream_.reset();
    context_.reset();
    return status;
  }

  std::optional<cuda_sim::CurrentContext> context_;
  std::optional<cuda_sim::OwnedStream> stream_;
  std::promise<void> begun_, finish_;
  std::future<cuda_sim::Status> ended_;
  bool over_ = false;
};

class Captures : public testing::TestWithParam<std::tuple<std::string, By>> {
 protected:
  Config config(bool share) const {
    Config config = gpu_config(std::get<0>(GetParam()));
    config.share_gpu_memory = share;
    return config;
  }
  By by() const { return std::get<1>(GetParam()); }
};

TEST_P(Captures, AreNotBrokenByTransfers) {
  for (const bool share : {false, true}) {
    Field field(config(share), all_sides[0], 8 * chunk);
    Capturing capturing(by());
    for (const auto direction : {weft::Direction::write, weft::Direction::read}) {
      TransferOptions verified;
      verified.verify = true;
      EXPECT_TRUE(
          succeeds(field.start(direction, whole(8 * chunk), verified).wait_quiescent(soon())));
    }
    EXPECT_EQ(capturing.finish(), cuda_sim::success);
    EXPECT_TRUE(same_bytes(field.here.bytes(), field.there.bytes()));
  }
}

TEST_P(Captures, AreNotBrokenByMeetingsAndMemory) {
  Store first(0, chunk), second(1, chunk);
  Couple pair = couple(config(false), config(false));
  Capturing capturing(by());
  {
    const Segment here = must(pair.a.add(first.memory()));
    Segment there = must(pair.b.add(second.memory()));
    // Its buffers are pinned as it is met.
    Engine third = must(Engine::open(config(false)));
    const auto met = pair.a.connect(third.address(), soon());
    EXPECT_TRUE(succeeds(met));
    Grant grant = must(there.grant({}, Rights::read_write));
    const Remote remote = must(pair.a.import(grant.blob()));
    EXPECT_TRUE(succeeds(must(pair.a.write(here, remote, whole(chunk))).wait_quiescent(soon())));
    EXPECT_TRUE(succeeds(grant.revoke(soon())));
    EXPECT_TRUE(succeeds(third.close(soon())));
  }
  EXPECT_TRUE(succeeds(pair.a.close(soon())));
  EXPECT_TRUE(succeeds(pair.b.close(soon())));
  EXPECT_EQ(capturing.finish(), cuda_sim::success);
}

TEST_P(Captures, AreNotBrokenByEventsAndStreamsThatWait) {
  Field field(config(false), all_sides[0], chunk);
  const cuda_sim::CurrentContext context(0);
  const cuda_sim::PinnedMemory source(chunk);
  const cuda_sim::OwnedStream fills, waits;
  const cuda_sim::OwnedEvent filled;
  Held held(fills);
  cuda_sim::check(cuda_sim::cuMemcpyAsync(reinterpret_cast<cuda_sim::Address>(field.here.address()),
                                          source.address(), chunk, fills));
  cuda_sim::check(cuda_sim::cuEventRecord(filled, fills));
  Capturing capturing(by());
  TransferOptions after;
  after.after_gpu_event = static_cast<cuda_sim::Event>(filled);
  after.signal = Signal{3};
  NotifyOptions stream;
  stream.gpu_stream = static_cast<cuda_sim::Stream>(waits);
  Expectation expected = must(field.pair.to_a.expect(3, 1, stream));
  Transfer transfer = field.start(weft::Direction::write, whole(chunk), after);
  EXPECT_TRUE(fails_with(transfer.wait(Deadline::in(20ms)), Code::timed_out));
  held.release();
  EXPECT_TRUE(succeeds(transfer.wait_quiescent(soon())));
  EXPECT_TRUE(succeeds(expected.wait(soon())));
  EXPECT_EQ(capturing.finish(), cuda_sim::success);
  cuda_sim::check(cuda_sim::cuStreamSynchronize(waits));
}

/// The mode is the thread's own again after each call.
TEST_P(Captures, LeaveTheThreadsModeAsItWas) {
  Field field(config(false), all_sides[0], chunk);
  int mode = cuda_sim::capture_within_thread;
  cuda_sim::check(cuda_sim::cuThreadExchangeStreamCaptureMode(&mode));
  field.expect_moved(weft::Direction::write, whole(chunk));
  EXPECT_TRUE(succeeds(field.local.release(soon())));
  mode = cuda_sim::capture_global;
  cuda_sim::check(cuda_sim::cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cuda_sim::capture_within_thread);
}

INSTANTIATE_TEST_SUITE_P(All, Captures,
                         testing::Combine(testing::ValuesIn(all_providers()),
                                          testing::Values(By::this_thread, By::another_thread)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == By::this_thread ? "_here" : "_there");
                         });

}  // namespace
}  // namespace weft::test
