// The files of a folder and of those below it.
#pragma once

#include <functional>
#include <string>
#include <vector>
#include <weft/error.hpp>

namespace weft::tool {

/// Their paths within the folder, sorted. Links are followed; what is neither a file nor a folder
/// is passed over. `left_out` hears the path of what can't be looked at, and why. Fails if `dir`
/// itself can't be.
Result<std::vector<std::string>> files_of(
    const std::string& dir,
    const std::function<void(const std::string& name, const std::string& why)>& left_out);

}  // namespace weft::tool
