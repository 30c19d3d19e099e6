#include "python/binding/gil.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace nb = nanobind;

namespace weft::python {
namespace {

std::atomic<bool> leaving{false};
pthread_t leaver;            // who ends the interpreter; set before `leaving`
std::atomic<int> within{0};  // threads between the look at `leaving` and what they then touch

/// For threads that are about to touch Python.
class Entry {
 public:
  Entry() { ++within; }
  ~Entry() {
    if (--within == 0 && leaving) within.notify_all();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  bool open() const { return !leaving || pthread_equal(leaver, pthread_self()) != 0; }
};

/// With the lock. No other thread touches Python from here on, and those that do are done.
void leave_interpreter() {
  leaver = pthread_self();
  leaving = true;
  PyThreadState* const state = PyEval_SaveThread();
  for (int left = within; left > 0; left = within) within.wait(left);
  PyEval_RestoreThread(state);
}

/// An exit handler. `atexit` calls it among the others, one of which may still wait for a thread
/// that is inside of Unlocked, and drops it behind the last of them.
struct Leaving {
  bool called = false;

  ~Leaving() {
    if (called) leave_interpreter();
  }
};

bool lock(PyThreadState* state) {
  const Entry entry;
  if (!entry.open()) return false;
  PyEval_RestoreThread(state);
  return true;
}

}  // namespace

void Unlocked::lock_again(PyThreadState* state) {
  if (lock(state)) return;
  for (;;) pause();
}

bool on_main_thread() {
  thread_local const bool main = syscall(SYS_gettid) == getpid();
  return main;
}

void run_on_main_thread(int (*task)(void*)) {
  const Entry entry;
  if (entry.open()) Py_AddPendingCall(task, nullptr);
}

void bind_exit(nb::module_& module) {
  nb::class_<Leaving>(module, "_Leaving", "Python ends: see binding/gil.hpp.")
      .def(nb::init<>())
      .def("__call__", [](Leaving& self) { self.called = true; });
  nb::module_::import_("atexit").attr("register")(module.attr("_Leaving")());
}

}  // namespace weft::python
