#include "base/random.hpp"

#include <sys/random.h>

#include <random>

namespace weft::core {

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  while (value == 0) {
    // getrandom of 8 bytes can't be short; it fails only on kernels that lack it.
    if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
      std::random_device device;
      value = (std::uint64_t{device()} << 32) | device();
    }
  }
  return value;
}

}  // namespace weft::core
