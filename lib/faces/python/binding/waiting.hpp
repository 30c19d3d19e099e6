// Timeouts in seconds, and waits that signals such as Ctrl-C interrupt.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "python/binding/gil.hpp"
#include "python/binding/seconds.hpp"

namespace weft::python {

/// Less than none counts as none, more than a day as a day.
Nanoseconds duration_of(double seconds);
Deadline deadline_of(Seconds timeout, Nanoseconds standard);
std::optional<Deadline> deadline_of(Seconds timeout);

/// How long a signal may have to wait for its handler.
constexpr std::chrono::milliseconds slice(50);

/// Runs the handlers of signals that have come, and throws what they raise.
void run_signal_handlers();

/// Waits by calling `wait`, which fails with `timed_out` at its deadline and may be called again.
/// `unlock`: it may take a while.
template <typename Wait>
auto wait_in_slices(Deadline deadline, Wait&& wait, bool unlock = true) {
  for (;;) {
    const Deadline soon = Deadline::in(slice);
    const bool last = !on_main_thread() || deadline.when() <= soon.when();
    const Deadline until = last ? deadline : soon;
    auto waited = [&] {
      const Unlocked others_run(unlock);
      return wait(until);
    }();
    // What times out before its time has ended for good.
    if (waited || waited.error().code() != Code::timed_out || last || !until.passed())
      return waited;
    run_signal_handlers();
  }
}

/// Makes a call that waits and can't be made in parts. `call` owns what it needs: after a signal it
/// goes on by itself, until its deadline.
template <typename Call>
auto call_interruptibly(Deadline deadline, Call call) {
  if (!on_main_thread() || deadline.left() <= slice) {
    const Unlocked others_run;
    return call();
  }
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto outcome = task.get_future();
  std::thread(std::move(task)).detach();
  for (;;) {
    const bool ready = [&] {
      const Unlocked others_run;
      return outcome.wait_for(slice) == std::future_status::ready;
    }();
    if (ready) return outcome.get();
    run_signal_handlers();
  }
}

}  // namespace weft::python
