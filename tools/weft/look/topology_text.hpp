// A machine as text for people.
#pragma once

#include <string>

#include "look/machine.hpp"

namespace weft::tool {

/// Nodes, switches and devices, each below the one that it hangs on.
std::string tree_text(const Topology& topology);

/// Which NICs serve each GPU and each node's memory and why, and what has no place in the tree.
std::string serving_text(const Machine& machine);

}  // namespace weft::tool
