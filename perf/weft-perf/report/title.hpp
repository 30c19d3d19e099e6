// Names of points, for people.
#pragma once

#include <string>

#include "workload/point.hpp"

namespace weft::perf {

/// "write 64.00 KiB x16 random, window 4".
std::string title(const Point& point);
/// The same without the size, for what is shown against it.
std::string series_title(const Point& point);

}  // namespace weft::perf
