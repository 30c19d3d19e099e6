// A path as a graph in Graphviz's language.
#pragma once

#include <string>
#include <weft/path.hpp>

namespace weft::tool {

/// Both sides in a frame each; copies are thick and coloured.
std::string to_dot(const Path& path);

}  // namespace weft::tool
