// A path as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <weft/path.hpp>

namespace weft::tool {

nlohmann::ordered_json to_json(const Path& path);

}  // namespace weft::tool
