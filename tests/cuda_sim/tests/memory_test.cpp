// What the driver says of memory, and that the CPU gets at none that is a device's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "cuda_sim.hpp"
#include "pattern.hpp"

namespace weft::cuda_sim {
namespace {

class CudaSimMemory : public testing::Test {
 protected:
  const CurrentContext context_;
};

template <typename T>
T attribute(int which, Address address) {
  T value{};
  check(cuPointerGetAttribute(&value, which, address));
  return value;
}

// The default action: what a sanitizer prints of a crash is not this test's business.
void touch(const std::byte* memory) {
  signal(SIGSEGV, SIG_DFL);
  const volatile std::byte* const byte = memory;
  static_cast<void>(*byte);
}

using CudaSimMemoryDeathTest = CudaSimMemory;

TEST_F(CudaSimMemoryDeathTest, OfADeviceKillsTheCpuThatTouchesIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const DeviceMemory memory(10'000);
  memory.fill(1);
  EXPECT_EXIT(touch(memory.pointer()), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(touch(memory.pointer() + 9'999), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(CudaSimMemoryDeathTest, ThatIsManagedKillsTheCpuOnceItIsFreed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Address address = 0;
  check(cuMemAllocManaged(&address, 10'000, attach_global));
  const auto* const bytes = reinterpret_cast<std::byte*>(address);
  EXPECT_EQ(bytes[9'999], std::byte{});
  check(cuMemFree_v2(address));
  EXPECT_EXIT(touch(bytes), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(CudaSimMemory, OfADeviceIsOutOfReachForTheKernel) {
  const DeviceMemory memory(10'000);
  memory.fill(1);
  std::byte byte{};
  iovec local{&byte, 1}, remote{memory.pointer(), 1};
  EXPECT_EQ(process_vm_readv(getpid(), &local, 1, &remote, 1, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(process_vm_writev(getpid(), &local, 1, &remote, 1, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  EXPECT_EQ(write(pipe_ends[1], memory.pointer(), 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  EXPECT_TRUE(memory.holds(1));
}

TEST_F(CudaSimMemory, OfADeviceIsKnownByAnyAddressInIt) {
  const DeviceMemory memory(10'000);
  for (const std::size_t offset : {0, 1, 9'999}) {
    const Address at = memory.address(offset);
    EXPECT_EQ(attribute<unsigned>(pointer_memory_type, at), memory_device);
    EXPECT_EQ(attribute<Context>(pointer_context, at), context_.handle());
    EXPECT_EQ(attribute<int>(pointer_device_ordinal, at), 0);
    EXPECT_EQ(attribute<int>(pointer_is_managed, at), 0);
    EXPECT_EQ(attribute<Address>(pointer_range_start, at), memory.address());
    EXPECT_EQ(attribute<std::size_t>(pointer_range_size, at), memory.size());
    EXPECT_EQ(attribute<int>(pointer_legacy_ipc_capable, at), 1);
    EXPECT_EQ(attribute<int>(pointer_gpudirect_capable, at), 0);
    Address base = 0;
    std::size_t bytes = 0;
    check(cuMemGetAddressRange_v2(&base, &bytes, at));
    EXPECT_EQ(base, memory.address());
    EXPECT_EQ(bytes, memory.size());
  }
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, memory.address(10'000)),
            invalid_value);
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, memory.address() - 1), invalid_value);
  EXPECT_EQ(cuPointerGetAttribute(&type, 4711, memory.address()), invalid_value);
}

TEST_F(CudaSimMemory, OfTheSecondDeviceSaysSo) {
  const CurrentContext second(1);
  const DeviceMemory memory(100);
  EXPECT_EQ(attribute<int>(pointer_device_ordinal, memory.address()), 1);
  EXPECT_EQ(attribute<Context>(pointer_context, memory.address()), second.handle());
}

TEST_F(CudaSimMemory, OfTheHostIsUnknownUnlessPinned) {
  Blob host(10'000);
  const auto address = reinterpret_cast<Address>(host.data());
  unsigned type = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, address), invalid_value);
  check(cuMemHostRegister_v2(host.data() + 100, 1000, host_register_portable));
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, address + 99), invalid_value);
  EXPECT_EQ(attribute<unsigned>(pointer_memory_type, address + 100), memory_host);
  EXPECT_EQ(attribute<unsigned>(pointer_memory_type, address + 1099), memory_host);
  check(cuMemHostUnregister(host.data() + 100));
  EXPECT_EQ(cuPointerGetAttribute(&type, pointer_memory_type, address + 100), invalid_value);
}

TEST_F(CudaSimMemory, AsksForManyAttributesAtOnce) {
  const DeviceMemory memory(100);
  int attributes[] = {pointer_memory_type, pointer_device_ordinal, pointer_host_pointer};
  unsigned type = 7;
  int device = 7;
  void* host = &type;
  void* values[] = {&type, &device, &host};
  check(cuPointerGetAttributes(3, attributes, values, memory.address()));
  EXPECT_EQ(type, memory_device);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(host, nullptr);
  // Where the single question is an error, this one gives what stands for nothing.
  check(cuPointerGetAttributes(3, attributes, values, reinterpret_cast<Address>(&memory)));
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(device, -2);
}

TEST_F(CudaSimMemory, SynchronisesIfTold) {
  const DeviceMemory memory(100);
  EXPECT_EQ(attribute<int>(pointer_sync_memops, memory.address()), 0);
  const unsigned on = 1;
  check(cuPointerSetAttribute(&on, pointer_sync_memops, memory.address()));
  EXPECT_EQ(attribute<int>(pointer_sync_memops, memory.address(50)), 1);
  EXPECT_EQ(cuPointerSetAttribute(&on, pointer_memory_type, memory.address()), invalid_value);
  // As of driver 580, which lets it be set of all that it knows.
  const PinnedMemory pinned(100);
  check(cuPointerSetAttribute(&on, pointer_sync_memops, pinned.address()));
  const Blob unknown(100);
  EXPECT_EQ(
      cuPointerSetAttribute(&on, pointer_sync_memops, reinterpret_cast<Address>(unknown.data())),
      invalid_value);
}

TEST_F(CudaSimMemory, ContextsKeepTheirFlags) {
  unsigned flags = 1;
  check(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, 0u);
  check(cuCtxSetFlags(context_sync_memops));
  check(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, context_sync_memops);
  check(cuCtxSetFlags(0));
}

TEST_F(CudaSimMemory, IsPinnedOnce) {
  Blob host(10'000);
  check(cuMemHostRegister_v2(host.data(), 5'000, 0));
  EXPECT_EQ(cuMemHostRegister_v2(host.data(), 5'000, 0), host_memory_already_registered);
  EXPECT_EQ(cuMemHostRegister_v2(host.data() + 4'999, 10, 0), host_memory_already_registered);
  EXPECT_EQ(cuMemHostUnregister(host.data() + 1), host_memory_not_registered);
  check(cuMemHostUnregister(host.data()));
  EXPECT_EQ(cuMemHostUnregister(host.data()), host_memory_not_registered);

  const DeviceMemory memory(100);
  EXPECT_EQ(cuMemHostRegister_v2(memory.pointer(), 100, 0), invalid_value);
  EXPECT_EQ(cuMemHostRegister_v2(host.data(), 0, 0), invalid_value);
  void* const nothing =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(nothing, 4096);
  EXPECT_EQ(cuMemHostRegister_v2(nothing, 4096, 0), invalid_value);
}

TEST_F(CudaSimMemory, IsFreedOnceAndByItsOwnCall) {
  Address address = 0, managed = 0;
  void* pinned = nullptr;
  check(cuMemAlloc_v2(&address, 100));
  check(cuMemAllocManaged(&managed, 100, attach_global));
  check(cuMemHostAlloc(&pinned, 100, 0));
  EXPECT_EQ(cuMemFree_v2(address + 1), invalid_value);
  EXPECT_EQ(cuMemFreeHost(reinterpret_cast<void*>(managed)), invalid_value);
  EXPECT_EQ(cuMemFree_v2(reinterpret_cast<Address>(pinned)), invalid_value);
  EXPECT_EQ(cuMemHostUnregister(pinned), host_memory_not_registered);
  check(cuMemFree_v2(address));
  check(cuMemFree_v2(managed));
  check(cuMemFreeHost(pinned));
  EXPECT_EQ(cuMemFree_v2(address), invalid_value);
  EXPECT_EQ(cuMemFree_v2(managed), invalid_value);
  EXPECT_EQ(cuMemFreeHost(pinned), invalid_value);
  EXPECT_EQ(cuMemFree_v2(0), success) << "as free(3)";
}

TEST_F(CudaSimMemory, RunsOut) {
  std::size_t before = 0, after = 0, total = 0;
  check(cuMemGetInfo_v2(&before, &total));
  EXPECT_EQ(before, total);
  Address address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, total + 1), out_of_memory);
  EXPECT_EQ(cuMemAlloc_v2(&address, 0), invalid_value);
  const DeviceMemory memory(1000);
  check(cuMemGetInfo_v2(&after, &total));
  EXPECT_EQ(before - after, 1000u);
  EXPECT_EQ(cuMemAlloc_v2(&address, total), out_of_memory);
}

// Addresses are not used again soon, and yet there are always some.
TEST_F(CudaSimMemory, ComesAndGoesWithoutEnd) {
  const DeviceMemory kept(1000);
  kept.fill(1);
  for (int i = 0; i < 100; ++i) {
    Address address = 0;
    check(cuMemAlloc_v2(&address, std::size_t{6} << 30));
    ASSERT_NE(address, kept.address());
    check(cuMemFree_v2(address));
  }
  EXPECT_TRUE(kept.holds(1));
}

TEST_F(CudaSimMemory, IsNotFreedUnderACopy) {
  Address address = 0;
  check(cuMemAlloc_v2(&address, 1'000'000));
  const PinnedMemory pinned(1'000'000);
  test::fill(pinned.bytes(), 1);
  const OwnedStream stream;
  weft_cuda_sim_delay(1, 2'000);
  weft_cuda_sim_clear();
  check(cuMemcpyAsync(address, pinned.address(), 1'000'000, stream));
  check(cuMemFree_v2(address));
  weft_cuda_sim_delay(0, 0);
  EXPECT_EQ(copies(Direction::host_to_device), 1u);
  EXPECT_EQ(cuStreamQuery(stream), success);
}

TEST(CudaSimDmabuf, IsRefusedByDefault) {
  const CurrentContext context;
  const DeviceMemory memory(8192);
  int supported = -1, descriptor = -1;
  check(cuDeviceGetAttribute(&supported, device_dmabuf_supported, 0));
  EXPECT_EQ(supported, 0);
  EXPECT_EQ(cuMemGetHandleForAddressRange(&descriptor, memory.address(), 8192, handle_dmabuf, 0),
            not_supported);
}

}  // namespace
}  // namespace weft::cuda_sim
