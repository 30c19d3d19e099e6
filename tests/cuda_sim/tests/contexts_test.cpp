// Contexts: who needs one, what is whose, and what the calling thread has.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cuda_sim.hpp"

namespace weft::cuda_sim {
namespace {

/// With the driver initialised, and no context.
class CudaSimContexts : public testing::Test {
 protected:
  CudaSimContexts() { check(cuInit(0)); }
  ~CudaSimContexts() override {
    EXPECT_EQ(weft_cuda_sim_stack_depth(), 0u);
    EXPECT_EQ(weft_cuda_sim_retained(0), 0u);
    EXPECT_EQ(weft_cuda_sim_regions(), 0u);
    EXPECT_EQ(weft_cuda_sim_streams(), 0u);
    EXPECT_EQ(weft_cuda_sim_events(), 0u);
  }
};

TEST_F(CudaSimContexts, AreNeededByWhatAllocatesCopiesOrCreates) {
  Address address = 0;
  void* memory = nullptr;
  Stream stream = nullptr;
  Event event = nullptr;
  IpcHandle handle{};
  Ordinal device = 0;
  std::size_t bytes = 0;
  std::vector<std::byte> host(4096);
  for (const Status status : {
           cuMemAlloc_v2(&address, 1),
           cuMemAllocManaged(&address, 1, attach_global),
           cuMemAllocHost_v2(&memory, 1),
           cuMemFree_v2(1),
           cuMemHostRegister_v2(host.data(), host.size(), 0),
           cuMemHostUnregister(host.data()),
           cuMemcpy(reinterpret_cast<Address>(host.data()),
                    reinterpret_cast<Address>(host.data() + 100), 10),
           cuMemcpyAsync(1, 2, 3, nullptr),
           cuMemGetInfo_v2(&bytes, &bytes),
           cuStreamCreate(&stream, 0),
           cuStreamSynchronize(nullptr),
           cuEventCreate(&event, 0),
           cuEventRecord(event, nullptr),
           cuIpcGetMemHandle(&handle, 1),
           cuIpcOpenMemHandle_v2(&address, handle, ipc_lazy_peer_access),
           cuIpcCloseMemHandle(1),
           cuCtxGetDevice(&device),
           cuCtxSynchronize(),
           cuCtxPopCurrent_v2(nullptr),
       })
    EXPECT_EQ(status, invalid_context);
}

TEST_F(CudaSimContexts, AreNotNeededToAskOfAPointer) {
  Address address = 0;
  {
    const CurrentContext context;
    Context kept = nullptr;
    check(cuMemAlloc_v2(&address, 1000));
    check(cuDevicePrimaryCtxRetain(&kept, 0));
  }
  unsigned type = 0;
  check(cuPointerGetAttribute(&type, pointer_memory_type, address + 999));
  EXPECT_EQ(type, memory_device);
  const CurrentContext context;
  check(cuMemFree_v2(address));
  check(cuDevicePrimaryCtxRelease_v2(0));
}

TEST_F(CudaSimContexts, OfADeviceAreOneForAllWhoRetainIt) {
  Context first = nullptr, second = nullptr, other = nullptr;
  check(cuDevicePrimaryCtxRetain(&first, 0));
  check(cuDevicePrimaryCtxRetain(&second, 0));
  check(cuDevicePrimaryCtxRetain(&other, 1));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
  check(cuDevicePrimaryCtxRelease_v2(0));
  check(cuCtxPushCurrent_v2(first));
  Address address = 0;
  check(cuMemAlloc_v2(&address, 1000));
  check(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_EQ(cuMemAlloc_v2(&address, 1), context_is_destroyed);
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, address), invalid_value)
      << "the memory went with its context";
  check(cuCtxPopCurrent_v2(nullptr));
  EXPECT_EQ(cuCtxPushCurrent_v2(first), invalid_context);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), invalid_context);
  check(cuDevicePrimaryCtxRelease_v2(1));
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&first, 2), invalid_device);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&first, -1), invalid_device);
}

TEST_F(CudaSimContexts, LieOnAStackThatIsTheThreadsOwn) {
  const CurrentContext first(0);
  const CurrentContext second(1);
  EXPECT_EQ(weft_cuda_sim_stack_depth(), 2u);
  Ordinal device = -1;
  check(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  std::thread([] {
    EXPECT_EQ(weft_cuda_sim_stack_depth(), 0u);
    Context none = reinterpret_cast<Context>(1);
    check(cuCtxGetCurrent(&none));
    EXPECT_EQ(none, nullptr);
  }).join();
  Context popped = nullptr;
  check(cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, second.handle());
  check(cuCtxSetCurrent(second.handle()));
  EXPECT_EQ(weft_cuda_sim_stack_depth(), 1u) << "it takes the place of the one on top";
  check(cuCtxSetCurrent(nullptr));
  EXPECT_EQ(weft_cuda_sim_stack_depth(), 0u);
  check(cuCtxSetCurrent(first.handle()));
  check(cuCtxPushCurrent_v2(second.handle()));
}

TEST_F(CudaSimContexts, MayBeMadeBesideThePrimaryOne) {
  const CurrentContext primary;
  Context made = nullptr;
  check(cuCtxCreate_v2(&made, 0, 0));
  EXPECT_NE(made, primary.handle());
  EXPECT_EQ(weft_cuda_sim_stack_depth(), 2u);
  Address address = 0;
  check(cuMemAlloc_v2(&address, 100));
  EXPECT_EQ(cuCtxDestroy_v2(primary.handle()), invalid_context);
  check(cuCtxDestroy_v2(made));
  EXPECT_EQ(weft_cuda_sim_stack_depth(), 1u);
  EXPECT_EQ(cuCtxDestroy_v2(made), invalid_context);
  EXPECT_EQ(cuMemFree_v2(address), invalid_value) << "the memory went with its context";
}

TEST_F(CudaSimContexts, KeepStreamsAndEventsApart) {
  const CurrentContext first(0);
  const OwnedStream stream;
  const OwnedEvent event;
  {
    const CurrentContext second(1);
    const OwnedStream other;
    EXPECT_EQ(cuEventRecord(event, other), invalid_handle);
    EXPECT_EQ(cuStreamQuery(stream), invalid_handle);
    EXPECT_EQ(cuStreamSynchronize(stream), invalid_handle);
    EXPECT_EQ(cuStreamWaitEvent(other, event, 0), success) << "waiting is for all";
    EXPECT_EQ(cuEventQuery(event), success) << "asking, too";
  }
  EXPECT_EQ(cuEventRecord(event, stream), success);
  EXPECT_EQ(cuEventRecord(nullptr, stream), invalid_handle);
  int no_stream = 0;
  EXPECT_EQ(cuStreamQuery(reinterpret_cast<Stream>(&no_stream)), invalid_handle);
}

TEST_F(CudaSimContexts, EndWhatTheyHaveUnderWayWhenDestroyed) {
  Context made = nullptr;
  check(cuCtxCreate_v2(&made, 0, 0));
  const DeviceMemory memory(100);
  const PinnedMemory pinned(100);
  Stream stream = nullptr;
  Event event = nullptr;
  check(cuStreamCreate(&stream, 0));
  check(cuEventCreate(&event, 0));
  weft_cuda_sim_clear();
  weft_cuda_sim_hold(stream);
  check(cuMemcpyAsync(memory.address(), pinned.address(), 100, stream));
  check(cuCtxDestroy_v2(made));
  const auto all = records();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.back().status, context_is_destroyed);
  EXPECT_EQ(cuEventQuery(event), invalid_handle);
}

TEST_F(CudaSimContexts, LetPeersIn) {
  const CurrentContext first(0);
  const CurrentContext second(1);
  int can = 0;
  check(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  check(cuDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cuCtxEnablePeerAccess(second.handle(), 0), peer_access_unsupported);
  EXPECT_EQ(cuCtxEnablePeerAccess(first.handle(), 0), success);
  EXPECT_EQ(cuCtxEnablePeerAccess(first.handle(), 0), peer_access_already_enabled);
}

}  // namespace
}  // namespace weft::cuda_sim
