// What the library should make of a machine: worked out from the facts, without hwloc.
#pragma once

#include <string>
#include <weft/topology.hpp>

#include "facts.hpp"

namespace weft::facts {

Topology expected_topology(const Machine& machine);

/// All of it, a line for each part: to compare and to look at.
std::string text_of(const Topology& topology);

/// A topology made by the library from the machine's XML; ends the test program if it can't.
Topology loaded(const Machine& machine);

}  // namespace weft::facts
