// Python's lock while a thread waits in Weft, and the end of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

namespace weft::python {

/// Other Python threads run while it lives. Nothing of Python's may be touched meanwhile.
///
/// A thread that asks for the lock when the interpreter has ended is ended by it, in the midst of
/// C++ code, and the process with it. So once Python's exit handlers have run, other threads than
/// theirs stay in here until the process ends.
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

/// From any thread, with or without the lock: Python's main thread calls `task` soon. It does not
/// if it has too much else to do, or if the interpreter ends.
void run_on_main_thread(int (*task)(void*));

/// Lets Unlocked know when Python ends.
void bind_exit(nanobind::module_& module);

}  // namespace weft::python
