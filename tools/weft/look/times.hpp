// Times of several transfers or requests, in seconds, as text and as JSON.
#pragma once

#include <string>

#include "common/exchange.hpp"
#include "common/spread.hpp"

namespace weft::tool {

/// "1.2 ms / 1.3 ms / 4 ms": least, median and greatest.
std::string times_text(const Spread& times);
Json times_json(const Spread& times);
/// Throws Json::exception if it is none.
Spread times_from_json(const Json& json);

}  // namespace weft::tool
