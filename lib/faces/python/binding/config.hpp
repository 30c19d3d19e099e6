// Options of an engine as keyword arguments.
#pragma once

#include <nanobind/nanobind.h>

#include <weft/config.hpp>
#include <weft/engine.hpp>

namespace weft::python {

Config config_of(const nanobind::kwargs& options);
/// As the engine has it, wherever it came from.
Nanoseconds default_timeout_of(const Engine& engine);

void bind_config(nanobind::module_& module);

}  // namespace weft::python
