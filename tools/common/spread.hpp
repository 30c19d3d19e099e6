// The least, the middle and the greatest of several times.
#pragma once

#include <string>
#include <vector>

#include "common/exchange.hpp"

namespace weft::tool {

/// In seconds.
struct Spread {
  double min = 0, median = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

/// "1.2 ms / 1.3 ms / 4 ms".
std::string spread_text(const Spread& spread);
Json to_json(const Spread& spread);
/// Throws Json::exception if it is none.
Spread spread_from_json(const Json& json);

}  // namespace weft::tool
