// Starts threads, which the system may refuse.
#pragma once

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

}  // namespace weft::core
