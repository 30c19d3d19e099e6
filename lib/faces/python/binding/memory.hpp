// weft.Memory, Segment, Grant, Remote.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "python/binding/objects.hpp"

namespace weft::python {

/// Of weft.Memory, or of an object that has memory.
PySegment add(PyEngine& self, nanobind::handle object, bool read_only, const std::string& near_gpu);

/// add(), a grant of all of it, and its name.
PySegment share(PyEngine& self, nanobind::handle object, const std::string& name, Rights rights);

void bind_memory(nanobind::module_& module);

}  // namespace weft::python
