// How values are written in what director and nodes say to each other.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>
#include <weft/weft.hpp>

#include "content.hpp"
#include "line.hpp"

namespace weft {

inline void to_json(chaos::Json& json, const Range& range) {
  json = {range.offset, range.length};
}
inline void from_json(const chaos::Json& json, Range& range) {
  range = {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>()};
}
inline void to_json(chaos::Json& json, const Pair& pair) {
  json = {pair.local, pair.remote, pair.length};
}
inline void from_json(const chaos::Json& json, Pair& pair) {
  pair = {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>(),
          json.at(2).get<std::uint64_t>()};
}
inline void to_json(chaos::Json& json, const Error& error) {
  json = {{"code", std::string(to_string(error.code()))}, {"text", error.to_string()}};
}

namespace chaos {

inline void to_json(Json& json, const Stretch& stretch) {
  json = {stretch.offset, stretch.length, stretch.stream, stretch.from};
}
inline void from_json(const Json& json, Stretch& stretch) {
  stretch = {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>(),
             json.at(2).get<std::uint64_t>(), json.at(3).get<std::uint64_t>()};
}

}  // namespace chaos
}  // namespace weft
