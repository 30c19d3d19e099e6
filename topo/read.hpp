// hwloc's view of a machine, devices included.
#pragma once

#include <string>
#include <string_view>
#include <weft/error.hpp>

#include "topo/hwloc.hpp"

namespace weft::topo {

/// This machine, or with a path that of an XML file. Whole, whatever part of it this process may
/// use.
Result<HwlocPtr> read_machine(const std::string& xml);

/// A value that was attached to an object; null if there is none of that name.
const char* info_of(const hwloc_obj& object, const char* name);

/// The number that a text begins with, whatever the locale; 0 if it begins with none.
double number_in(std::string_view text);

}  // namespace weft::topo
