#include "python/binding/waiting.hpp"

#include <algorithm>
#include <cmath>

#include "python/binding/errors.hpp"

namespace nb = nanobind;

namespace weft::python {

Nanoseconds duration_of(double seconds) {
  if (std::isnan(seconds)) raise(Error(Code::invalid_argument, "a time of nan seconds"));
  const double most = std::chrono::duration<double>(Deadline::furthest).count();
  return std::chrono::duration_cast<Nanoseconds>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, most)));
}

Deadline deadline_of(Seconds timeout, Nanoseconds standard) {
  return Deadline::in(timeout ? duration_of(*timeout) : standard);
}

std::optional<Deadline> deadline_of(Seconds timeout) {
  if (!timeout) return std::nullopt;
  return Deadline::in(duration_of(*timeout));
}

void run_signal_handlers() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace weft::python
