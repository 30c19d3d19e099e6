#include <cuda_runtime.h>

#include "kernels.hpp"

namespace {

/// As in tools/common/pattern.hpp.
__device__ unsigned char pattern_at(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t word = seed * 0xd1342543de82ef95 + (offset / 8 + 1) * 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  word ^= word >> 31;
  return static_cast<unsigned char>(word >> (8 * (offset % 8)));
}

/// A thread's first byte, and its distance to the next.
__device__ std::uint64_t first() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ std::uint64_t step() {
  return std::uint64_t{gridDim.x} * blockDim.x;
}

__global__ void fill(unsigned char* memory, std::uint64_t bytes, std::uint64_t seed,
                     std::uint64_t offset) {
  for (std::uint64_t i = first(); i < bytes; i += step()) memory[i] = pattern_at(seed, offset + i);
}

__global__ void find_wrong(const unsigned char* memory, std::uint64_t bytes, std::uint64_t seed,
                           std::uint64_t offset, unsigned long long* wrong) {
  for (std::uint64_t i = first(); i < bytes; i += step())
    if (memory[i] != pattern_at(seed, offset + i))
      atomicMin(wrong, static_cast<unsigned long long>(i));
}

constexpr unsigned blocks = 512, threads = 256;

const char* text_of(cudaError_t status) {
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

}  // namespace

const char* weft_gpu_fill(void* memory, std::uint64_t bytes, std::uint64_t seed,
                          std::uint64_t offset) {
  fill<<<blocks, threads>>>(static_cast<unsigned char*>(memory), bytes, seed, offset);
  const cudaError_t launched = cudaGetLastError();
  return text_of(launched != cudaSuccess ? launched : cudaDeviceSynchronize());
}

const char* weft_gpu_first_wrong(const void* memory, std::uint64_t bytes, std::uint64_t seed,
                                 std::uint64_t offset, std::uint64_t* wrong) {
  unsigned long long* found = nullptr;
  unsigned long long none = bytes;
  if (const char* failed = text_of(cudaMalloc(&found, sizeof none))) return failed;
  cudaError_t status = cudaMemcpy(found, &none, sizeof none, cudaMemcpyHostToDevice);
  if (status == cudaSuccess) {
    find_wrong<<<blocks, threads>>>(static_cast<const unsigned char*>(memory), bytes, seed, offset,
                                    found);
    status = cudaGetLastError();
  }
  if (status == cudaSuccess) status = cudaMemcpy(&none, found, sizeof none, cudaMemcpyDeviceToHost);
  cudaFree(found);
  *wrong = none;
  return text_of(status);
}
