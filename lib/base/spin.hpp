// Looking for a while, before it is worth to sleep.
#pragma once

#include <sched.h>

#include <weft/deadline.hpp>

#include "base/cpu_pressure.hpp"

namespace weft::core {

inline CpuPressure& cpu_pressure_of_this_thread() {
  thread_local CpuPressure cpu_pressure;
  return cpu_pressure;
}

/// Looks until `done`, or until then, and gives the core away in between; not where others compute.
template <typename Done>
void spin(Done&& done, Clock::time_point until) {
  if (done()) return;
  CpuPressure& cpu_pressure = cpu_pressure_of_this_thread();
  for (auto now = Clock::now(); now < until && !cpu_pressure.at(now);) {
    sched_yield();
    if (done()) return;
    const auto back = Clock::now();
    cpu_pressure.waited(back - now, back);
    now = back;
  }
}

}  // namespace weft::core
