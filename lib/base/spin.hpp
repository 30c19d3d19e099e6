// Looking for a while, before it is worth to sleep.
#pragma once

#include <sched.h>

#include <weft/deadline.hpp>

#include "base/cpu_pressure.hpp"

namespace weft::core {

inline Crowding& crowding_of_this_thread() {
  thread_local Crowding crowding;
  return crowding;
}

/// Looks until `done`, or until then, and gives the core away in between; not where others compute.
template <typename Done>
void spin(Done&& done, Clock::time_point until) {
  if (done()) return;
  Crowding& crowding = crowding_of_this_thread();
  for (auto now = Clock::now(); now < until && !crowding.at(now);) {
    sched_yield();
    if (done()) return;
    const auto back = Clock::now();
    crowding.waited(back - now, back);
    now = back;
  }
}

}  // namespace weft::core
