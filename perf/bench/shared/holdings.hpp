// What this process holds of the system's resources.
#pragma once

#include <cstddef>

namespace weft::perf {

struct Holdings {
  std::size_t resident = 0;  ///< Bytes (VmRSS).
  std::size_t pinned = 0;    ///< Bytes that the kernel holds in place for devices (VmPin).
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};

/// From /proc/self, as of now.
Holdings holdings();

}  // namespace weft::perf
