// What waits for progress threads must not be called on one of them.
#pragma once

#include <weft/error.hpp>

#include "base/thread.hpp"

namespace weft::core {

inline Result<void> check_outside_callbacks() {
  if (!InCallback::now()) return {};
  return fail(Code::invalid_argument, "blocking call inside a callback");
}

}  // namespace weft::core
