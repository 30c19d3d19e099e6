#include "driver/device.hpp"

#include <algorithm>

namespace weft::cuda_sim {

Uuid Device::uuid() const {
  Uuid uuid{};
  const std::string text = "weft" + pci;
  std::copy_n(text.begin(), std::min(text.size(), sizeof uuid.bytes), uuid.bytes);
  return uuid;
}

}  // namespace weft::cuda_sim
