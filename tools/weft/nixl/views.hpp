// The changes and findings of weft nixl, as text and as JSON. Missing values are null.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nixl/wheel_status.hpp"

namespace weft::tool {

std::string text(const std::vector<NixlWheelChanges>& wheels);
std::string text(const NixlStatus& status);

nlohmann::ordered_json to_json(const NixlPython& python);
nlohmann::ordered_json to_json(const std::vector<NixlWheelChanges>& wheels);
nlohmann::ordered_json to_json(const NixlStatus& status);

}  // namespace weft::tool
