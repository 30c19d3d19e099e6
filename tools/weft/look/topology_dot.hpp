// A machine as a graph in Graphviz's language.
#pragma once

#include <string>

#include "look/machine.hpp"

namespace weft::tool {

/// For the program `dot`. NUMA nodes stand in the middle and their devices to the left and right,
/// each GPU in a colour of its own and each NIC in those of the GPUs that it serves.
std::string to_dot(const Machine& machine);

}  // namespace weft::tool
