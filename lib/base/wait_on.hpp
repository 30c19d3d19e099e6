// Waiting for a condition variable until a deadline.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <weft/deadline.hpp>

namespace weft::core {

/// Whether `done` came true by the deadline. One that has passed costs no system call: callers who
/// make progress themselves look that way between two steps.
template <typename Done>
bool wait_on(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
             Deadline deadline, Done&& done) {
  if (done()) return true;
  return !deadline.passed() && changed.wait_until(lock, deadline.when(), std::forward<Done>(done));
}

}  // namespace weft::core
