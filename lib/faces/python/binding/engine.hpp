// weft.Engine.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

void bind_engine(nanobind::module_& module);

}  // namespace weft::python
