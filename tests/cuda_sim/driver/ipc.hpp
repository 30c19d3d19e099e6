// What a handle for other processes says of a piece of device memory.
#pragma once

#include <unistd.h>

#include "driver/memory.hpp"
#include "interface/application.hpp"

namespace weft::cuda_sim {

/// Enough to find the memory's file while its owner has it.
struct Exported {
  std::uint64_t magic;
  pid_t process;
  int descriptor;
  std::uint64_t bytes, tag;
  Uuid device;
};

IpcHandle handle_of(const Region& region, const Uuid& device);
/// Throws Failure for what no handle_of gave.
Exported read_handle(const IpcHandle& handle);

}  // namespace weft::cuda_sim
