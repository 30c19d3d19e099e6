// Memory of a device's that its process lets others of the host map.
#pragma once

#include <cstdint>
#include <weft/place.hpp>

namespace weft::core {

struct Lent {
  Blob handle;                // as the device's driver gave it
  std::uint64_t offset = 0;   // of the memory in what that stands for
  std::uint64_t address = 0;  // of the memory in the process that lends it
};

}  // namespace weft::core
