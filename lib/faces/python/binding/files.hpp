// Files as memory: weft.Memory.file, and copies between a file and memory of one engine.
#pragma once

#include <nanobind/nanobind.h>

#include <weft/memory.hpp>

#include "python/binding/objects.hpp"

namespace weft::python {

/// Whether what is added of it may be read and not written.
bool is_source(const Memory& memory);

void bind_file(nanobind::class_<Memory>& memory);
void bind_copies(nanobind::class_<PySegment>& segment);

}  // namespace weft::python
