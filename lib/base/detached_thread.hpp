// Runs possibly unbounded work on a detached thread.
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>
#include <weft/error.hpp>

namespace weft::core {

/// Begins the task on a thread of its own. `unavailable` if there is none to be had: then it was
/// not begun.
template <typename Task>
Result<void> start_detached(Task task) {
  try {
    std::thread(std::move(task)).detach();
    return {};
  } catch (const std::system_error& error) {
    return fail(Code::unavailable, fmt::format("can't start a thread: {}", error.what()));
  }
}

/// The same, but done at once where no thread can be started.
template <typename Task>
void run_detached(const Task& task) {
  if (!start_detached(task)) task();
}

}  // namespace weft::core
