// A machine as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "look/machine.hpp"

namespace weft::tool {

/// All lists are in bus order. What can't be told is null.
nlohmann::ordered_json to_json(const Machine& machine);

/// On several lines. Text from outside is escaped down to ASCII; what is no text in it is replaced.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace weft::tool
