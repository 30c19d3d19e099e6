// A comparison as text.
#pragma once

#include <string>

#include "look/comparison.hpp"

namespace weft::tool {

/// Several lines, to be printed as they are.
std::string table(const Comparison& comparison);

}  // namespace weft::tool
