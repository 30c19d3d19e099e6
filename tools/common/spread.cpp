#include "common/spread.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"

namespace weft::tool {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {values.front(), median, values.back()};
}

std::string spread_text(const Spread& spread) {
  return fmt::format("{} / {} / {}", duration(spread.min), duration(spread.median),
                     duration(spread.max));
}

Json to_json(const Spread& spread) {
  return {{"min", spread.min}, {"median", spread.median}, {"max", spread.max}};
}

Spread spread_from_json(const Json& json) {
  return {json.at("min").get<double>(), json.at("median").get<double>(),
          json.at("max").get<double>()};
}

}  // namespace weft::tool
