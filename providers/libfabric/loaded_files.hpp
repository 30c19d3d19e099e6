// The libfabrics among the files that this process has loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::providers {

/// In the order in which they were loaded, by any name.
std::vector<std::string> loaded_libfabrics();

/// Whether a package has renamed it to bring it along: libfabric-1a2b3c4d.so.1.
bool is_renamed(std::string_view file);

/// The loaded file that holds a function; empty if none does.
std::string file_of(void* function);

}  // namespace weft::providers
