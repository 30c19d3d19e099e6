// What a test asks to fail fails, once, and in the way of the real driver.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "cuda_sim.hpp"
#include "pattern.hpp"

namespace weft::cuda_sim {
namespace {

constexpr std::size_t size = 10'000;
constexpr unsigned patience_ms = 30'000;

class CudaSimFaults : public testing::Test {
 protected:
  CudaSimFaults() { weft_cuda_sim_clear(); }
};

TEST_F(CudaSimFaults, OfACallComeAtTheNthAndOnce) {
  const CurrentContext context;
  const DeviceMemory memory(size);
  const PinnedMemory pinned(size);
  const OwnedStream stream;
  const auto copy = [&] { return cuMemcpyAsync(memory.address(), pinned.address(), size, stream); };
  weft_cuda_sim_fail("cuMemcpyAsync", 3, out_of_memory);
  const std::array given = {copy(), copy(), copy(), copy()};
  EXPECT_EQ(given, (std::array{success, success, out_of_memory, success}));
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(copies(Direction::host_to_device), 3u);
}

TEST_F(CudaSimFaults, CanBeHadOfAnyCall) {
  const CurrentContext context;
  Address address = 0;
  Stream stream = nullptr;
  Event event = nullptr;
  void* host = nullptr;
  Blob memory(size);
  weft_cuda_sim_fail("cuMemAlloc", 1, out_of_memory);
  EXPECT_EQ(cuMemAlloc_v2(&address, size), out_of_memory);
  weft_cuda_sim_fail("cuMemAllocHost", 1, out_of_memory);
  EXPECT_EQ(cuMemAllocHost_v2(&host, size), out_of_memory);
  weft_cuda_sim_fail("cuMemHostRegister", 1, out_of_memory);
  EXPECT_EQ(cuMemHostRegister_v2(memory.data(), size, 0), out_of_memory);
  weft_cuda_sim_fail("cuStreamCreate", 1, unknown_error);
  EXPECT_EQ(cuStreamCreate(&stream, 0), unknown_error);
  weft_cuda_sim_fail("cuEventCreate", 1, unknown_error);
  EXPECT_EQ(cuEventCreate(&event, 0), unknown_error);
  EXPECT_EQ(weft_cuda_sim_regions() + weft_cuda_sim_streams() + weft_cuda_sim_events(), 0u);
  EXPECT_EQ(cuMemAlloc_v2(&address, size), success);
  check(cuMemFree_v2(address));
}

/// A context of its own, which a fault breaks for good.
class CudaSimBrokenContext : public CudaSimFaults {
 protected:
  CudaSimBrokenContext() {
    check(cuInit(0));
    check(cuCtxCreate_v2(&context_, 0, 0));
    check(cuMemAlloc_v2(&memory_, size));
    check(cuMemAllocHost_v2(&pinned_, size));
    check(cuStreamCreate(&stream_, stream_non_blocking));
    check(cuStreamCreate(&other_, stream_non_blocking));
    check(cuEventCreate(&event_, 0));
  }
  ~CudaSimBrokenContext() override {
    EXPECT_EQ(cuCtxDestroy_v2(context_), success) << "a broken context can be destroyed";
    EXPECT_EQ(weft_cuda_sim_regions() + weft_cuda_sim_streams() + weft_cuda_sim_events(), 0u);
  }
  Status copy(Stream stream) const { return cuMemcpyHtoDAsync_v2(memory_, pinned_, size, stream); }
  void expect_broken(Status status) {
    Address address = 0;
    EXPECT_EQ(cuEventQuery(event_), status);
    EXPECT_EQ(cuEventSynchronize(event_), status);
    EXPECT_EQ(cuStreamQuery(stream_), status);
    EXPECT_EQ(cuStreamSynchronize(other_), status);
    EXPECT_EQ(copy(other_), status);
    EXPECT_EQ(cuMemAlloc_v2(&address, 1), status);
    EXPECT_EQ(cuMemFree_v2(memory_), status);
    EXPECT_EQ(cuMemFreeHost(pinned_), status);
    EXPECT_EQ(cuStreamDestroy_v2(stream_), status);
    EXPECT_EQ(cuEventDestroy_v2(event_), status);
    EXPECT_EQ(cuCtxSynchronize(), status);
  }

  Context context_ = nullptr;
  Address memory_ = 0;
  void* pinned_ = nullptr;
  Stream stream_ = nullptr, other_ = nullptr;
  Event event_ = nullptr;
};

TEST_F(CudaSimBrokenContext, IsOneInWhichACopyFailed) {
  weft_cuda_sim_fail("copy", 2, ecc_uncorrectable);
  for (const Stream each : {stream_, other_}) weft_cuda_sim_hold(each);
  check(copy(other_));
  for (int i = 0; i < 3; ++i) check(copy(stream_));
  weft_cuda_sim_release(stream_);
  EXPECT_EQ(cuStreamSynchronize(stream_), ecc_uncorrectable);
  expect_broken(ecc_uncorrectable);
  EXPECT_TRUE(weft_cuda_sim_await(Phase::ended, 4, patience_ms)) << "what is held ends, too";
  EXPECT_EQ(copies(Direction::host_to_device), 1u) << "one was done, before";
}

TEST_F(CudaSimBrokenContext, IsOneWhosePinnedMemoryWentUnderACopy) {
  Blob host(size);
  check(cuMemHostRegister_v2(host.data(), size, 0));
  weft_cuda_sim_hold(stream_);
  check(cuMemcpyDtoHAsync_v2(host.data(), memory_, size, stream_));
  check(cuMemHostUnregister(host.data()));
  weft_cuda_sim_release(stream_);
  EXPECT_EQ(cuStreamSynchronize(stream_), illegal_address);
  EXPECT_TRUE(test::same_bytes(host, Blob(size)));
  expect_broken(illegal_address);
}

TEST_F(CudaSimBrokenContext, LeavesOthersAlone) {
  weft_cuda_sim_fail("copy", 1, unknown_error);
  check(copy(stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), unknown_error);
  const CurrentContext healthy(0);
  const DeviceMemory memory(size);
  memory.fill(1);
  EXPECT_TRUE(memory.holds(1));
}

TEST_F(CudaSimBrokenContext, EndsWaitingForValues) {
  check(cuStreamWaitValue64_v2(stream_, reinterpret_cast<Address>(pinned_), 1, wait_equal));
  check(copy(stream_));
  weft_cuda_sim_fail("copy", 1, unknown_error);
  check(copy(other_));
  EXPECT_EQ(cuStreamSynchronize(stream_), unknown_error);
}

}  // namespace
}  // namespace weft::cuda_sim
