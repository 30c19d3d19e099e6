// Points in time that may lie beyond the clock's end.
#pragma once

#include <weft/deadline.hpp>

namespace weft::core {

/// `time` after `from`; the end of the clock if that is sooner.
inline Clock::time_point saturating_add(Clock::time_point from, Nanoseconds time) {
  return time < Clock::time_point::max() - from ? from + time : Clock::time_point::max();
}

}  // namespace weft::core
