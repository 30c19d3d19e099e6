// Weft's plug-in, opened by the NIXL of a wheel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "nixl/wheels.hpp"

namespace weft::tool {

/// The result of a trial: a process of its own has written some bytes with the backend.
struct NixlOpening {
  std::string name;                  ///< Of the backend.
  std::vector<std::string> plugins;  ///< That NIXL lists.
  std::vector<std::string> memory;   ///< Kinds that the backend takes.
  std::vector<std::string> loaded;   ///< Files of NIXL, Weft and libfabric.
  std::uint64_t bytes = 0, wrong = 0;
  std::string problem;           ///< Empty: it works.
  std::vector<std::string> log;  ///< What the process wrote to standard error at last.
};

Result<NixlOpening> open_backend(const NixlPython& python, const NixlWheel& wheel,
                                 const std::string& name, Nanoseconds patience);

}  // namespace weft::tool
