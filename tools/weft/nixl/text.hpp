// What weft nixl has done or found, as text.
#pragma once

#include <string>
#include <vector>

#include "nixl/wheel_status.hpp"

namespace weft::tool {

std::string text(const std::vector<NixlWheelChanges>& wheels);
std::string text(const NixlStatus& status);

}  // namespace weft::tool
