// weft-perf weights: steps of new weights between processes of this machine.
#pragma once

#include "weights/shared.hpp"

namespace weft::perf {

void add_options(CLI::App& app, WeightsOptions& options);

/// Measures, and says what came of it. The exit code.
int run_weights(const WeightsOptions& options);

}  // namespace weft::perf
