// Options of an engine as keyword arguments.
#pragma once

#include <nanobind/nanobind.h>

#include <weft/config.hpp>

namespace weft::python {

Config config_of(const nanobind::kwargs& options);
/// From the text of a time, such as an engine's settings have.
Nanoseconds time_of(const std::string& text);

void bind_config(nanobind::module_& module);

}  // namespace weft::python
