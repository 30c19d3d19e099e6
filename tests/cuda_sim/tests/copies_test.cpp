// Bytes arrive, all of them and no others, whatever memory they are in.
#include <gtest/gtest.h>

#include <cstring>

#include "cuda_sim.hpp"
#include "pattern.hpp"

namespace weft::cuda_sim {
namespace {

using test::fill;
using test::holds;
using test::pattern;

class CudaSimCopies : public testing::Test {
 protected:
  CudaSimCopies() { weft_cuda_sim_clear(); }
  const CurrentContext context_;
};

constexpr std::size_t size = 300'001;

TEST_F(CudaSimCopies, NewMemoryIsReadBackAsItWasWritten) {
  const DeviceMemory memory(size);
  memory.fill(1);
  EXPECT_TRUE(memory.holds(1));
  EXPECT_FALSE(memory.holds(2));
  EXPECT_EQ(bytes_copied(Direction::host_to_device), size);
  EXPECT_EQ(copies(Direction::device_to_host), 2u);
}

TEST_F(CudaSimCopies, PartsLandWhereTheyBelong) {
  const DeviceMemory memory(size);
  memory.fill(1);
  memory.write(pattern(1000, 2), 4321);
  Blob expected = pattern(size, 1);
  fill(std::span(expected).subspan(4321, 1000), 2);
  EXPECT_TRUE(test::same_bytes(memory.read(), expected));
  EXPECT_TRUE(holds(memory.read(4321, 1000), 2));
}

TEST_F(CudaSimCopies, GoThroughPinnedMemoryToTheOtherDevice) {
  const DeviceMemory source(size);
  source.fill(3);
  const PinnedMemory staging(size);
  const OwnedStream stream;
  check(cuMemcpyAsync(staging.address(), source.address(), size, stream));
  check(cuStreamSynchronize(stream));
  EXPECT_TRUE(holds(staging.bytes(), 3));

  const CurrentContext other(1);
  const DeviceMemory target(size);
  const OwnedStream there;
  check(cuMemcpyHtoDAsync_v2(target.address(), staging.data(), size, there));
  check(cuStreamSynchronize(there));
  EXPECT_TRUE(target.holds(3));
}

TEST_F(CudaSimCopies, AreCountedByDirection) {
  const DeviceMemory a(100), b(100);
  const PinnedMemory p(200);
  const OwnedStream stream;
  const CurrentContext other(1);
  const DeviceMemory c(100);
  check(cuCtxPopCurrent_v2(nullptr));
  weft_cuda_sim_clear();
  check(cuMemcpyAsync(a.address(), p.address(), 10, stream));
  check(cuMemcpyAsync(p.address(), a.address(), 20, stream));
  check(cuMemcpyDtoDAsync_v2(b.address(), a.address(), 30, stream));
  check(cuMemcpyAsync(c.address(), a.address(), 40, stream));
  check(cuMemcpyAsync(p.address() + 100, p.address(), 50, stream));
  check(cuMemcpyPeerAsync(c.address(), other.handle(), a.address(), context_.handle(), 60, stream));
  check(cuStreamSynchronize(stream));
  check(cuCtxPushCurrent_v2(other.handle()));
  EXPECT_EQ(bytes_copied(Direction::host_to_device), 10u);
  EXPECT_EQ(bytes_copied(Direction::device_to_host), 20u);
  EXPECT_EQ(bytes_copied(Direction::device_to_device), 30u);
  EXPECT_EQ(bytes_copied(Direction::peer), 100u);
  EXPECT_EQ(copies(Direction::peer), 2u);
  EXPECT_EQ(bytes_copied(Direction::host_to_host), 50u);
  EXPECT_EQ(counters().pageable_copies, 0u);
}

TEST_F(CudaSimCopies, StayWithinAllocations) {
  const DeviceMemory memory(size);
  const PinnedMemory pinned(100);
  const OwnedStream stream;
  Blob host(size + 1);
  EXPECT_EQ(cuMemcpyDtoH_v2(host.data(), memory.address(), size + 1), invalid_value);
  EXPECT_EQ(cuMemcpyHtoD_v2(memory.address(size - 1), host.data(), 2), invalid_value);
  EXPECT_EQ(cuMemcpyAsync(pinned.address() + 1, memory.address(), 100, stream), invalid_value);
  EXPECT_EQ(cuMemcpyAsync(memory.address() - 1, pinned.address(), 1, stream), invalid_value);
  EXPECT_EQ(cuMemsetD8_v2(memory.address(1), 0, size), invalid_value);
  EXPECT_EQ(cuMemcpyDtoH_v2(host.data(), memory.address(size - 1), 1), success);
  EXPECT_EQ(cuMemcpyAsync(0, memory.address(), 1, stream), invalid_value);
  EXPECT_EQ(cuMemcpyAsync(memory.address(), ~Address{0} - 3, 10, stream), invalid_value);
}

TEST_F(CudaSimCopies, FindNoFreedMemory) {
  Address address = 0;
  check(cuMemAlloc_v2(&address, size));
  check(cuMemFree_v2(address));
  std::byte one{};
  EXPECT_EQ(cuMemcpyHtoD_v2(address, &one, 1), invalid_value);
  EXPECT_EQ(cuMemFree_v2(address), invalid_value);
  const DeviceMemory next(size);
  EXPECT_NE(next.address(), address) << "the address is used again at once";
}

TEST_F(CudaSimCopies, KnowTheSidesThatTheirNamesTell) {
  const DeviceMemory memory(100);
  const PinnedMemory pinned(100);
  const OwnedStream stream;
  EXPECT_EQ(cuMemcpyHtoD_v2(pinned.address(), pinned.data(), 10), invalid_value);
  EXPECT_EQ(cuMemcpyDtoH_v2(pinned.data(), pinned.address(), 10), invalid_value);
  EXPECT_EQ(cuMemcpyDtoDAsync_v2(memory.address(), pinned.address(), 10, stream), invalid_value);
}

TEST_F(CudaSimCopies, OfPageableMemoryEndBeforeTheCallDoes) {
  const DeviceMemory memory(size);
  memory.fill(5);
  Blob host(size);
  const OwnedStream stream;
  weft_cuda_sim_clear();
  check(cuMemcpyDtoHAsync_v2(host.data(), memory.address(), size, stream));
  EXPECT_TRUE(holds(host, 5)) << "without any waiting";
  EXPECT_EQ(counters().pageable_copies, 1u);
  EXPECT_EQ(counters().pageable_bytes, size);
}

TEST_F(CudaSimCopies, OfRegisteredMemoryAreLikeThoseOfPinned) {
  const DeviceMemory memory(size);
  memory.fill(6);
  Blob host(size);
  check(cuMemHostRegister_v2(host.data(), size, host_register_portable));
  const OwnedStream stream;
  weft_cuda_sim_clear();
  weft_cuda_sim_hold(stream);
  check(cuMemcpyDtoHAsync_v2(host.data(), memory.address(), size, stream));
  EXPECT_EQ(cuStreamQuery(stream), not_ready);
  EXPECT_TRUE(test::same_bytes(host, Blob(size))) << "nothing may have been copied yet";
  weft_cuda_sim_release(stream);
  check(cuStreamSynchronize(stream));
  EXPECT_TRUE(holds(host, 6));
  EXPECT_EQ(counters().pageable_copies, 0u);
  check(cuMemHostUnregister(host.data()));
}

TEST_F(CudaSimCopies, SetBytes) {
  const DeviceMemory memory(1000);
  memory.fill(7);
  check(cuMemsetD8_v2(memory.address(10), 0xab, 20));
  const OwnedStream stream;
  check(cuMemsetD8Async(memory.address(500), 0xcd, 500, stream));
  check(cuStreamSynchronize(stream));
  Blob expected = pattern(1000, 7);
  std::memset(expected.data() + 10, 0xab, 20);
  std::memset(expected.data() + 500, 0xcd, 500);
  EXPECT_TRUE(test::same_bytes(memory.read(), expected));
}

TEST_F(CudaSimCopies, OfManagedMemoryMeetTheCpu) {
  Address address = 0;
  check(cuMemAllocManaged(&address, size, attach_global));
  const std::span bytes(reinterpret_cast<std::byte*>(address), size);
  fill(bytes, 8);
  const DeviceMemory memory(size);
  check(cuMemcpy(memory.address(), address, size));
  EXPECT_TRUE(memory.holds(8));
  memory.fill(9);
  check(cuMemcpy(address, memory.address(), size));
  EXPECT_TRUE(holds(bytes, 9));
  check(cuMemFree_v2(address));
}

}  // namespace
}  // namespace weft::cuda_sim
