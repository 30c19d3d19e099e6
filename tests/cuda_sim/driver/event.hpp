// An event: the end of what its stream had queued when it was recorded.
#pragma once

#include "driver/work.hpp"

namespace weft::core::cuda {

struct EventObject {
  const Context context;
  const unsigned flags;
  weft::cuda_sim::MarkerPtr recorded;  // null before it was
};

}  // namespace weft::core::cuda
