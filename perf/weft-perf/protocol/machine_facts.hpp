// On what machine something was measured, and with which versions.
#pragma once

#include <nlohmann/json.hpp>

namespace weft::perf {

/// Of this one: host, CPU, cores, memory, nodes, kernel and its congestion control; and of Weft and
/// libfabric, with their environment.
nlohmann::json machine_facts();

}  // namespace weft::perf
