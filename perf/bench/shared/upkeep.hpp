// What a process costs while it does nothing, as others see it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace weft::perf {

struct Upkeep {
  double cpu_seconds = 0;             ///< Of all its threads, in the kernel too.
  std::uint64_t voluntary_waits = 0;  ///< How often a thread of its gave its core away.
};

/// Since it began, but for the waits of threads that have ended. Zeros for a process that is gone.
Upkeep upkeep_of(pid_t process);

}  // namespace weft::perf
