// Captures of graphs, and the calls that they forbid.
#include <gtest/gtest.h>

#include <thread>

#include "cuda_sim.hpp"

namespace weft::cuda_sim {
namespace {

class CudaSimCaptures : public testing::Test {
 protected:
  void begin(int mode) { check(cuStreamBeginCapture_v2(stream_, mode)); }
  Status end() {
    Graph graph = nullptr;
    const Status status = cuStreamEndCapture(stream_, &graph);
    EXPECT_EQ(graph != nullptr, status == success);
    return graph != nullptr ? cuGraphDestroy(graph) : status;
  }
  int state() {
    int capturing = -1;
    check(cuStreamIsCapturing(stream_, &capturing));
    return capturing;
  }
  /// Of an unsafe call by another thread, whose mode is that one.
  Status elsewhere(int mode) {
    Status status = success;
    std::thread([&] {
      check(cuCtxSetCurrent(context_.handle()));
      check(cuThreadExchangeStreamCaptureMode(&mode));
      Address address = 0;
      status = cuMemAlloc_v2(&address, 1);
      if (status == success) cuMemFree_v2(address);
      check(cuThreadExchangeStreamCaptureMode(&mode));
    }).join();
    return status;
  }

  const CurrentContext context_;
  const DeviceMemory memory_{64};
  const OwnedStream stream_, other_;
  const OwnedEvent event_;
};

TEST_F(CudaSimCaptures, EndInAGraphAndRunNothing) {
  memory_.fill(1);
  begin(capture_global);
  EXPECT_EQ(state(), 1);
  EXPECT_EQ(cuMemsetD8Async(memory_.address(), 0, 64, stream_), success);
  EXPECT_EQ(end(), success);
  EXPECT_EQ(state(), 0);
  EXPECT_TRUE(memory_.holds(1));
}

TEST_F(CudaSimCaptures, AreWorthNothingAfterAnUnsafeCallOfAnotherThread) {
  begin(capture_global);
  EXPECT_EQ(elsewhere(capture_global), capture_unsupported);
  EXPECT_EQ(state(), 2);
  EXPECT_EQ(cuMemsetD8Async(memory_.address(), 0, 64, stream_), capture_invalidated);
  EXPECT_EQ(end(), capture_invalidated);
  EXPECT_EQ(elsewhere(capture_global), success);
}

TEST_F(CudaSimCaptures, DoNotConcernThreadsThatSaySo) {
  begin(capture_global);
  EXPECT_EQ(elsewhere(capture_within_thread), success);
  EXPECT_EQ(elsewhere(capture_relaxed), success);
  EXPECT_EQ(end(), success);
  begin(capture_within_thread);
  EXPECT_EQ(elsewhere(capture_global), success);
  EXPECT_EQ(end(), success);
}

TEST_F(CudaSimCaptures, ConcernTheirOwnThreadUnlessRelaxed) {
  for (const int mode : {capture_global, capture_within_thread}) {
    begin(mode);
    EXPECT_EQ(cuEventQuery(event_), capture_unsupported);
    EXPECT_EQ(end(), capture_invalidated);
  }
  begin(capture_relaxed);
  EXPECT_EQ(cuEventQuery(event_), success);
  EXPECT_EQ(end(), success);
}

TEST_F(CudaSimCaptures, LetWorkBePutOnOtherStreams) {
  const PinnedMemory pinned(64);
  begin(capture_global);
  EXPECT_EQ(cuMemcpyAsync(memory_.address(), pinned.address(), 64, other_), success);
  EXPECT_EQ(cuEventRecord(event_, other_), success);
  EXPECT_EQ(end(), success);
  check(cuStreamSynchronize(other_));
}

TEST_F(CudaSimCaptures, KeepTheirEventsAndStreamsToThemselves) {
  begin(capture_relaxed);
  check(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuEventQuery(event_), captured_event);
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), not_supported);
  EXPECT_EQ(end(), success);
  begin(capture_relaxed);
  EXPECT_EQ(cuStreamQuery(stream_), capture_unsupported);
  EXPECT_EQ(end(), capture_invalidated);
}

}  // namespace
}  // namespace weft::cuda_sim
