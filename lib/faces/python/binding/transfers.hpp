// Prepared lists, transfers and their options.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

/// The classes.
void bind_transfers(nanobind::module_& module);
/// The methods of Engine that make them: once weft.Engine is there.
void bind_submission(nanobind::module_& module);

}  // namespace weft::python
