// The libfabric that this process calls, and others that it has loaded.
#pragma once

#include <string>
#include <vector>

namespace weft::providers {

struct LoadedLibraries {
  std::string in_use;               // its file
  std::vector<std::string> others;  // for example of a Python package that brings its own
};
/// At the time.
LoadedLibraries loaded_libraries();

}  // namespace weft::providers
