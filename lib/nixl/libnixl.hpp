// Which libnixl has loaded this plug-in, and whether its interface is the one declared here.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::nixl {

struct LibNixl {
  std::string path;     // of the library that an address lies in; empty where it can't be told
  std::string version;  // of the wheel that it belongs to; empty where it belongs to none
};

/// By an address within it, such as that of a caller.
LibNixl libnixl_at(const void* address);

/// `protocol_mismatch` for a version that was not checked.
Result<void> check(const LibNixl& library);

}  // namespace weft::nixl
