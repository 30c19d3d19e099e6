// The wheels of NIXL that a Python has.
#pragma once

#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::tool {

struct NixlWheel {
  std::string package;  ///< "nixl-cu12"
  std::string module;   ///< "nixl_cu12"
  std::string version;
  std::string folder;  ///< Of its plug-ins.
};

struct NixlPython {
  std::string program;     ///< As it was asked for, which may set things before it starts
  std::string executable;  ///< what it says that it is.
  std::string version;
  std::string nixl;  ///< Version of the package that takes one of the wheels; empty: not there.
  std::vector<NixlWheel> wheels;
};

/// Asks a Python, which find_python() has found. `not_found` where it has no wheel of NIXL, or one
/// without a folder of plug-ins.
Result<NixlPython> find_wheels(const std::string& python, Nanoseconds patience);

/// Which of its wheels `import nixl` takes here.
struct NixlChoice {
  std::string module;   ///< Empty: none,
  std::string problem;  ///< for this reason; both are empty where there is no package nixl.
};
Result<NixlChoice> find_choice(const NixlPython& python, Nanoseconds patience);

}  // namespace weft::tool
