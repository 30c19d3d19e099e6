// Known machines: instances of EC2 and others, from public sources (see machines.cpp).
#pragma once

#include <string_view>
#include <vector>

#include "facts.hpp"

namespace weft::facts {

/// In the order of their families.
const std::vector<Machine>& machines();

/// By name; null if there is none.
const Machine* find_machine(std::string_view name);

}  // namespace weft::facts
