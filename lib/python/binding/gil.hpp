// Python's lock while a thread waits in Weft, and the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

/// Other Python threads run while it lives. Nothing of Python's may be touched meanwhile.
///
/// A thread that asks for the lock when the interpreter has ended is ended by it, in the midst of
/// C++ code, and the process with it. So once Python's exit handlers run, threads other than the
/// main one stay in here until the process ends.
class Unlocked {
 public:
  explicit Unlocked(bool unlock = true) : state_(unlock ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked() {
    if (state_ != nullptr) lock_again(state_);
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  static void lock_again(PyThreadState* state);
  PyThreadState* const state_;
};

/// Whether it is the process's first thread: Python's signal handlers run there alone.
bool on_main_thread();

/// Python's exit handlers have run: nothing of Python's may be touched by engines' threads.
bool exiting();

/// Calls leave_interpreter() when Python ends.
void bind_exit(nanobind::module_& module);

}  // namespace weft::python
