// Points in the work of GPUs that transfers wait for.
#pragma once

#include <weft/error.hpp>

namespace weft::core {

/// Whether all that a CUDA event (CUevent) was recorded behind has ended. An error if there is no
/// CUDA in this process, or what the event stands for came to nothing.
Result<bool> cuda_event_happened(void* event);

}  // namespace weft::core
