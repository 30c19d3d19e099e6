// A process of the campaign: does what the director says, one engine after another.
#pragma once

#include <string>

namespace weft::chaos {

/// Listens to standard input, answers on standard output; returns the exit status.
int run_node(const std::string& name);

}  // namespace weft::chaos
