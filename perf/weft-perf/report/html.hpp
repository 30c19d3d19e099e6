// A report that is one file.
#pragma once

#include <string>
#include <vector>

#include "measure/point_result.hpp"

namespace weft::perf {

/// What was measured when, where and how; the picture, the figures, and the whole document.
std::string html(const std::vector<PointResult>& results, const std::string& picture,
                 const Json& document);

}  // namespace weft::perf
