// What the environment says about the simulated machine; README.md has the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::cuda_sim {

/// What GPUs differ in.
struct GpuSettings {
  int writes_ordering = 0;  // CUGPUDirectRDMAWritesOrdering
  bool flushes = true;      // cuFlushGPUDirectRDMAWrites
};

struct Settings {
  std::vector<std::string> pci;  // one for each GPU
  std::vector<GpuSettings> gpus;
  std::size_t memory;  // bytes of each GPU
  bool dmabuf, gpudirect, ipc, peer;
  int queues;  // of work, of a context
  std::uint64_t delay_seed;
  unsigned delay_microseconds;
  std::string failures;  // "cuMemAlloc:1:2,copy:3:700"

  static Settings from_environment();
  const GpuSettings& of(int gpu) const { return gpus[static_cast<std::size_t>(gpu)]; }
};

std::vector<std::string> split(const std::string& text, char separator);

}  // namespace weft::cuda_sim
