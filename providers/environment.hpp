// The variables that libfabric reads, once, when a process first uses it.
#pragma once

namespace weft::providers {

/// Sets what Weft's promises rest on, unless the application has set it. To be called before
/// libfabric is.
void settle_environment();

}  // namespace weft::providers
