// What weft nixl has done or found, as JSON. What is not there is null.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "nixl/wheel_status.hpp"

namespace weft::tool {

nlohmann::ordered_json to_json(const NixlPython& python);
nlohmann::ordered_json to_json(const std::vector<NixlWheelChanges>& wheels);
nlohmann::ordered_json to_json(const NixlStatus& status);

}  // namespace weft::tool
