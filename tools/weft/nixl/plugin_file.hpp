// Where Weft's plug-in for NIXL is.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::tool {

/// That of the installation, or of the build folder, that this command is part of; `not_found` if
/// it was built without.
Result<std::string> find_nixl_plugin();

}  // namespace weft::tool
