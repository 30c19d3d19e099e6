// Threads: starting them, keeping signals from them, and what is particular to each.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/error.hpp>

#include "base/system_error.hpp"

namespace weft::core {

/// Begins the task. `unavailable` if there is no thread to be had: then it was not begun.
template <typename Task>
Result<std::thread> start_thread(Task&& task) {
  try {
    return std::thread(std::forward<Task>(task));
  } catch (const std::system_error& error) {
    return fail(Code::unavailable, "can't start a thread: " + error_text(error.code().value()) +
                                       " (ulimit -u, or pids.max of the control group)");
  }
}

/// On a thread of its own: work that may block for ever.
template <typename Task>
Result<void> start_detached(Task&& task) {
  return start_thread(std::forward<Task>(task)).map([](std::thread thread) { thread.detach(); });
}

/// The same, but where there is no thread to be had it is done at once.
template <typename Task>
void run_detached(const Task& task) {
  if (!start_detached(task)) task();
}

/// Threads started in its scope leave all signals to the application's threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Threads started in its scope may have all cores of the process's control group, if the calling
/// thread is bound to one: servers bind theirs so, and poll on it.
class AllCores {
 public:
  AllCores() {
    if (pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
    if (CPU_COUNT(&before_) != 1) return;
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);  // the kernel takes away what the group does not have
    bound_ = pthread_setaffinity_np(pthread_self(), sizeof all, &all) == 0;
  }
  ~AllCores() {
    if (bound_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
  }
  AllCores(const AllCores&) = delete;
  AllCores& operator=(const AllCores&) = delete;

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

/// From 0 on, in the order in which threads ask first.
inline std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t mine = threads++;
  return mine;
}

/// For as long as a callback runs.
class InCallback {
 public:
  InCallback() noexcept { ++depth; }
  ~InCallback() { --depth; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static bool now() noexcept { return depth > 0; }

 private:
  static inline thread_local int depth = 0;
};

}  // namespace weft::core
