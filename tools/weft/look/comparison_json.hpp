// A comparison as JSON, and back.
#pragma once

#include "demo/protocol.hpp"
#include "look/comparison.hpp"

namespace weft::tool {

Json to_json(const Comparison& comparison);
/// Throws Json::exception if it is none.
Comparison comparison_from_json(const Json& json);

}  // namespace weft::tool
