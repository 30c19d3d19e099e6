// What NICs have counted, as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>
#include <weft/nic_counters.hpp>

namespace weft::tool {

/// What is not told is null.
nlohmann::ordered_json to_json(const std::vector<NicCounters>& nics);

}  // namespace weft::tool
