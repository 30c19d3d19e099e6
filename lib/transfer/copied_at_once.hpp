// What the thread that submits a transfer has copied of it.
#pragma once

#include <cstdint>

namespace weft::core {

/// The first bytes of the transfer, in the order of its pieces.
struct CopiedAtOnce {
  std::uint64_t bytes = 0, operations = 0, runs = 0;
  bool proven = false;     // the lease held when all had been read
  bool by_kernel = false;  // not through a mapping

  std::uint64_t through_mapping() const noexcept { return by_kernel ? 0 : bytes; }
};

}  // namespace weft::core
