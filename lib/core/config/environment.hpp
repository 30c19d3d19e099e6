// The variables of the environment that begin with WEFT_.
#pragma once

#include <map>
#include <string>
#include <vector>
#include <weft/config.hpp>

namespace weft::core {

/// Text by name: "WEFT_RAILS" -> "2".
using Environment = std::map<std::string, std::string>;

/// The process's, or an empty one where the call wants none.
Environment environment_for(const Config& call);

/// A sentence for each variable that is neither an option nor known otherwise.
std::vector<std::string> unknown_variables(const Environment& environment);

}  // namespace weft::core
