// Policies, and the paths that transfers would take.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <variant>
#include <weft/policy.hpp>

namespace weft::python {

Policy policy_of(const std::variant<std::string, Policy>& policy);

/// The classes.
void bind_paths(nanobind::module_& module);
/// The methods of Engine: once weft.Engine is there.
void bind_explain(nanobind::module_& module);

}  // namespace weft::python
