// weft.Peer, and the queue of events.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

/// The classes.
void bind_peers(nanobind::module_& module);
/// The methods of Engine: once weft.Engine is there.
void bind_meeting(nanobind::module_& module);

}  // namespace weft::python
