// What this process has allocated: to be linked into a program that wants to know.
#pragma once

#include <cstdint>

namespace weft::perf {

struct Heap {
  std::int64_t bytes = 0;        ///< In use, by malloc() and all that is made of it.
  std::int64_t allocations = 0;  ///< By operator new, ever.
};

/// As of now.
Heap heap();

}  // namespace weft::perf
