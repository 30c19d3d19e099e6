// NICs of a test's that reach the memory of the stand-in's GPUs: rails over tcp or shm which, when
// such memory is registered, map its DMA buffer and let the bytes go to and from there. The CPU
// still can't touch the memory at its address.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/extent.hpp"

namespace weft::test {

/// One such NIC, from its opening on. What it refuses may change at any time.
struct DirectNic {
  bool device_memory = true;
  bool takes_dmabufs = true;
  std::atomic<bool> refuses_dmabufs{false}, refuses_pointers{false}, refuses_peers{false};
  /// Bytes of GPUs' memory that it takes in one registration.
  std::atomic<std::size_t> most_bytes{~std::size_t{0}};
  /// What was registered of GPUs' memory, whether it still is or not.
  std::atomic<std::size_t> by_dmabuf{0}, by_pointer{0};
};

/// Rails that this process opens from here on are such NICs, in the order of `nics`, and those
/// beyond them are what they are. One of these at a time, and before any engine.
class DirectNics {
 public:
  explicit DirectNics(std::vector<std::shared_ptr<DirectNic>> nics);
  ~DirectNics();
  DirectNics(const DirectNics&) = delete;
  DirectNics& operator=(const DirectNics&) = delete;

 private:
  std::vector<std::shared_ptr<DirectNic>> nics_;
  std::size_t opened_ = 0;
};

/// From here on all rails of this process are such NICs, if the environment variable
/// WEFT_TEST_DIRECT_NICS is set and is not empty.
void use_direct_nics_if_asked();

}  // namespace weft::test
