// A path as text: its hops one below the other, then what they come to.
#pragma once

#include <string>
#include <weft/path.hpp>

namespace weft::tool {

/// "the kernel copies", "by the NIC".
std::string mover_text(const Hop& hop);
/// "write over tcp by the bounce-buffer transport: 4 copies of each byte, 2 here and 2 at the peer,
/// 4 by a CPU".
std::string path_headline(const Path& path);
std::string path_text(const Path& path);

}  // namespace weft::tool
