#include "python/binding/gil.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace nb = nanobind;

namespace weft::python {
namespace {

std::atomic<bool> leaving{false};
std::atomic<int> returning{0};  // threads between the look at `leaving` and the lock

[[noreturn]] void stay() {
  for (;;) pause();
}

/// By the main thread, with the lock. Nobody comes back from here on, and those on their way do.
void leave_interpreter() {
  leaving = true;
  PyThreadState* const state = PyEval_SaveThread();
  for (int left = returning; left > 0; left = returning) returning.wait(left);
  PyEval_RestoreThread(state);
}

}  // namespace

void Unlocked::lock_again(PyThreadState* state) {
  ++returning;
  if (leaving && !on_main_thread()) {
    if (--returning == 0) returning.notify_all();
    stay();
  }
  PyEval_RestoreThread(state);
  --returning;
  if (leaving) returning.notify_all();
}

bool on_main_thread() {
  thread_local const bool main = syscall(SYS_gettid) == getpid();
  return main;
}

bool exiting() {
  return leaving;
}

void bind_exit(nb::module_& module) {
  module.def("_leave_interpreter", &leave_interpreter, "Python ends: see binding/gil.hpp.");
  nb::module_::import_("atexit").attr("register")(module.attr("_leave_interpreter"));
}

}  // namespace weft::python
