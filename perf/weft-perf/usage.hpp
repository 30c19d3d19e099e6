// What a process has taken of its machine.
#pragma once

namespace weft::perf {

/// CPU time of all its threads, in the kernel too.
double cpu_seconds();

}  // namespace weft::perf
