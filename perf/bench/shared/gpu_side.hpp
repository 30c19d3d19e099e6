/// @file
/// What a process of a benchmark does with GPUs. All of it starts the CUDA driver, which does not
/// outlive a fork: only for processes that fork no more.
#pragma once

#include <chrono>
#include <cstddef>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/memory.hpp>

namespace weft::perf {

/// `unavailable` where there is no CUDA driver, or no GPU.
Result<int> count_gpus();

/// Fresh memory of a GPU, until the process ends.
Result<Memory> gpu_memory(int gpu, std::size_t bytes);

/// Copies without an engine, between a GPU and pinned memory, or from GPU to GPU.
struct PlainCopies {
  std::size_t size = 0;   ///< Bytes of a copy.
  unsigned window = 1;    ///< Copies in flight, each over a stream and pinned memory of its own.
  bool out = true;        ///< From the GPU `from` into the pinned memory ...
  bool in = true;         ///< ... and from that into the GPU `to`.
  bool straight = false;  ///< From the one GPU into the other instead.
  int from = 0, to = 0;
  Nanoseconds time = std::chrono::milliseconds(100);  ///< Measured; a fifth of it warms up before.
};
/// GB/s (10^9 bytes); what goes out and in again counts once.
Result<double> copy_plainly(const PlainCopies& copies);

}  // namespace weft::perf
