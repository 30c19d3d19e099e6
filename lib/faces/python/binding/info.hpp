// What an engine tells of itself: rails, candidates, settings, NIC counters, slow transfers.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

void bind_info(nanobind::module_& module);

}  // namespace weft::python
