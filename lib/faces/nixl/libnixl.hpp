// Which libnixl has loaded this plug-in, and whether its interface is the one declared here.
#pragma once

#include <string>
#include <weft/error.hpp>

namespace weft::nixl {

struct LibNixl {
  std::string path;     // of the library that an address lies in; empty where it can't be told
  std::string package;  // the wheel that it belongs to, "nixl_cu12"; empty where it belongs to none
  std::string version;  // likewise
};

/// By an address within it, such as that of a caller.
LibNixl libnixl_at(const void* address);

/// `protocol_mismatch` for a version that was not checked, unless it is a later release of one that
/// was and passes the self-test (self_test.hpp), as the backend of that name.
Result<void> check(const LibNixl& library, const std::string& backend);

}  // namespace weft::nixl
