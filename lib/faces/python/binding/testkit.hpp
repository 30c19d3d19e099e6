// weft.testing.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

/// After Engine.
void bind_testkit(nanobind::module_& module);

}  // namespace weft::python
