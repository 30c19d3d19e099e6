// A machine as text for people, as JSON, and as a graph in Graphviz's language.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "look/machine.hpp"

namespace weft::tool {

/// Nodes, switches and devices, each below the one that it hangs on.
std::string tree_text(const Topology& topology);

/// Which NICs serve each GPU and each node's memory and why, and what has no place in the tree.
std::string serving_text(const Machine& machine);

/// All lists are in bus order. Unknown values are null.
nlohmann::ordered_json to_json(const Machine& machine);

/// For the program `dot`. NUMA nodes stand in the middle and their devices to the left and right,
/// each GPU in a colour of its own and each NIC in those of the GPUs that it serves.
std::string to_dot(const Machine& machine);

}  // namespace weft::tool
