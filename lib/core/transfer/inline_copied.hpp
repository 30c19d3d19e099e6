// What the thread that submits a transfer has copied of it.
#pragma once

#include <cstdint>

namespace weft::core {

/// The first bytes of the transfer, in the order of its pieces.
struct InlineCopied {
  std::uint64_t bytes = 0, operations = 0, runs = 0;
  bool proven = false;  // the lease held when all had been read
};

}  // namespace weft::core
