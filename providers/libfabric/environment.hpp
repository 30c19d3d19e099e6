// The variables that libfabric reads, once, when a process first uses it.
#pragma once

#include <vector>
#include <weft/process.hpp>

namespace weft::providers {

/// Sets what Weft's promises rest on, unless the application has set it. To be called before
/// libfabric is. Only the first call does anything.
void settle_environment(ProcessVariable::SetBy by = ProcessVariable::SetBy::late);

/// What settle_environment() found and set; empty before.
std::vector<ProcessVariable> settled_environment();

}  // namespace weft::providers
