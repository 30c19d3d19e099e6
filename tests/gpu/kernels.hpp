// Patterns (tests/support/pattern.hpp) that a GPU itself writes and checks. They come from a
// library of their own, built by nvcc where there is one and named by WEFT_GPU_KERNELS, so that the
// tests need no nvcc.
#pragma once

#include <cstdint>

extern "C" {
/// Fills device memory of the current context; null, or what failed. Returns when it is done.
using WeftGpuFill = const char*(void* memory, std::uint64_t bytes, std::uint64_t seed,
                                std::uint64_t offset);
/// The first byte that is not the pattern's into `wrong`; `bytes` if there is none.
using WeftGpuFirstWrong = const char*(const void* memory, std::uint64_t bytes, std::uint64_t seed,
                                      std::uint64_t offset, std::uint64_t* wrong);
WeftGpuFill weft_gpu_fill;
WeftGpuFirstWrong weft_gpu_first_wrong;
}
