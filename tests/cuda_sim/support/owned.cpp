#include "support/owned.hpp"

#include <stdexcept>
#include <string>

#include "pattern.hpp"

namespace weft::cuda_sim {

void check(Status status) {
  if (status == success) return;
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  throw std::runtime_error(name != nullptr ? name : "CUDA error " + std::to_string(status));
}

CurrentContext::CurrentContext(Ordinal device) : device_(device) {
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context_, device));
  check(cuCtxPushCurrent_v2(context_));
}

CurrentContext::~CurrentContext() {
  cuCtxPopCurrent_v2(nullptr);
  cuDevicePrimaryCtxRelease_v2(device_);
}

DeviceMemory::DeviceMemory(std::size_t bytes) : DeviceBytes(bytes) {
  check(cuMemAlloc_v2(&address_, bytes));
}

DeviceMemory::~DeviceMemory() {
  cuMemFree_v2(address_);
}

void DeviceBytes::fill(std::uint64_t seed, std::uint64_t offset) const {
  write(test::pattern(bytes_, seed, offset));
}

testing::AssertionResult DeviceBytes::holds(std::uint64_t seed, std::uint64_t offset) const {
  return test::holds(read(), seed, offset);
}

Blob DeviceBytes::read(std::size_t offset, std::size_t bytes) const {
  Blob blob(bytes);
  check(cuMemcpyDtoH_v2(blob.data(), address(offset), bytes));
  return blob;
}

void DeviceBytes::write(Bytes bytes, std::size_t offset) const {
  check(cuMemcpyHtoD_v2(address(offset), bytes.data(), bytes.size()));
}

ManagedMemory::ManagedMemory(std::size_t bytes) : bytes_(bytes) {
  check(cuMemAllocManaged(&address_, bytes, attach_global));
}

ManagedMemory::~ManagedMemory() {
  cuMemFree_v2(address_);
}

PinnedMemory::PinnedMemory(std::size_t bytes) : bytes_(bytes) {
  check(cuMemAllocHost_v2(&data_, bytes));
}

PinnedMemory::~PinnedMemory() {
  cuMemFreeHost(data_);
}

OwnedStream::OwnedStream(unsigned flags) {
  check(cuStreamCreate(&stream_, flags));
}

OwnedStream::~OwnedStream() {
  cuStreamDestroy_v2(stream_);
}

OwnedEvent::OwnedEvent() {
  check(cuEventCreate(&event_, event_disable_timing));
}

OwnedEvent::~OwnedEvent() {
  cuEventDestroy_v2(event_);
}

}  // namespace weft::cuda_sim
