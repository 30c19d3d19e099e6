#include "look/times.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace weft::tool {

std::string times_text(const Spread& times) {
  return fmt::format("{} / {} / {}", duration(times.least), duration(times.median),
                     duration(times.greatest));
}

Json times_json(const Spread& times) {
  return {{"min", times.least}, {"median", times.median}, {"max", times.greatest}};
}

Spread times_from_json(const Json& json) {
  return {.median = json.at("median").get<double>(),
          .least = json.at("min").get<double>(),
          .greatest = json.at("max").get<double>()};
}

}  // namespace weft::tool
