// weft.kv: layouts of paged KV caches and the copies between them.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

void bind_kv(nanobind::module_& module);

}  // namespace weft::python
