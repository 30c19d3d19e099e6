// Points in the work of GPUs that transfers wait for.
#pragma once

#include <weft/error.hpp>

namespace weft::core {

/// Whether all that an event (of CUDA: CUevent) was recorded behind has ended. An error if no GPU's
/// driver is in this process, or what the event stands for came to nothing.
Result<bool> event_happened(void* event);

}  // namespace weft::core
