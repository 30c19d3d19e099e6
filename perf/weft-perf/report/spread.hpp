// A figure that was measured several times.
#pragma once

#include "common/spread.hpp"

namespace weft::perf {

using tool::median;
using tool::Spread;
using tool::spread_of;

}  // namespace weft::perf
