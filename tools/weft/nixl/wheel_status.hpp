// The links to Weft in a Python's NIXL, and whether they work.
#pragma once

#include <string>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "nixl/links.hpp"
#include "nixl/opening.hpp"
#include "nixl/wheels.hpp"

namespace weft::tool {

/// The changes in the folder of one wheel.
struct NixlWheelChanges {
  NixlWheel wheel;
  std::vector<NixlChanged> changes;
};

struct NixlWheelStatus {
  NixlWheel wheel;
  std::vector<NixlLink> links;
  std::vector<NixlOpening> openings;  ///< Of each backend that is Weft's.
};

struct NixlStatus {
  std::string plugin;  ///< Of this Weft; empty: it has none.
  NixlPython python;
  NixlChoice choice;
  std::string plugin_dir;  ///< $NIXL_PLUGIN_DIR: where NIXL looks instead of the wheel's folder.
  std::vector<NixlWheelStatus> wheels;
};

/// Whether the plug-in takes this release of NIXL.
bool is_checked(const NixlWheel& wheel);
/// A later release of a line of which some were: the plug-in tests itself with it.
bool is_like_checked(const NixlWheel& wheel);

/// Opens each of Weft's backends, for `patience` at most.
Result<NixlStatus> find_status(const NixlPython& python, Nanoseconds patience);

/// Why servers that use this Python can't use Weft; empty: they can.
std::string why_unusable(const NixlStatus& status);

}  // namespace weft::tool
