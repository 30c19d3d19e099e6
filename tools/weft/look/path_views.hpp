// A path as text, as JSON, and as a graph in Graphviz's language.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <weft/path.hpp>

namespace weft::tool {

/// "the kernel copies", "by the NIC".
std::string mover_text(const Hop& hop);
/// "write over tcp through bounce buffers: 4 copies of each byte, 2 here and 2 at the peer, 4 by a
/// CPU".
std::string path_headline(const Path& path);
std::string path_text(const Path& path);

nlohmann::ordered_json to_json(const Path& path);

/// Both sides in a frame each; copies are thick and coloured.
std::string to_dot(const Path& path);

}  // namespace weft::tool
