// What is wrong about a command line that no single option can tell.
#pragma once

#include <optional>
#include <string>

#include "options.hpp"

namespace weft::perf {

/// A sentence for people.
std::optional<std::string> complaint(const Options& options);

}  // namespace weft::perf
