// Memory of a GPU's that is mapped in parts, one behind the other (cuMemMap), as caching allocators
// have it that grow by and by: PyTorch's "expandable segments".
#pragma once

#include <cstddef>
#include <vector>

#include "support/owned.hpp"

namespace weft::test {

/// In the context that is current. Of the first GPU.
class MappedMemory : public cuda_sim::DeviceBytes {
 public:
  /// The stand-in has none.
  static bool offered();
  /// Parts as small as the GPU allows, two of them at least.
  explicit MappedMemory(std::size_t bytes);
  ~MappedMemory();

  /// What is mapped in all; behind it the address is reserved, and nothing there.
  std::size_t mapped() const { return parts_.size() * part_bytes_; }

 private:
  std::size_t reserved() const { return (parts_.size() + 1) * part_bytes_; }

  std::size_t part_bytes_ = 0;
  std::vector<unsigned long long> parts_;
};

}  // namespace weft::test
