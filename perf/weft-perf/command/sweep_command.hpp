// Measures all points, and says what came of it.
#pragma once

#include "command/options.hpp"

namespace weft::perf {

/// Against targets that are there, or that it starts as it does other initiators. The exit code.
int run_sweep(const Options& options);

}  // namespace weft::perf
