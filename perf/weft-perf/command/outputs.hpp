// Where results go besides the table.
#pragma once

#include <vector>

#include "command/options.hpp"
#include "measure/point_result.hpp"

namespace weft::perf {

/// Whether standard output is one of them, so that nothing else may be said there.
bool takes_standard_output(const Options& options);

/// Whether write_results() will find its way.
Result<void> check_outputs(const Options& options);

/// Where something can't be written, says so and goes on. Whether all is written.
bool write_results(const Options& options, const Json& results,
                   const std::vector<PointResult>& points);

}  // namespace weft::perf
