#include "control/attempt.hpp"

#include <fmt/core.h>

#include "base/wait_on.hpp"

namespace weft::core {

Result<LinkId> Attempt::wait() {
  std::unique_lock lock(mutex_);
  if (!wait_on(changed_, lock, deadline, [this] { return result_.has_value(); }))
    result_ =
        fail(Code::timed_out,
             fmt::format("no link with {} when the deadline passed, while {}", address, doing_));
  return *result_;
}

void Attempt::finish(Result<LinkId> result) {
  {
    const std::lock_guard lock(mutex_);
    if (result_) return;
    result_ = result;
    changed_.notify_all();
  }
  if (then_) then_(result);
}

bool Attempt::finished() const {
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

void Attempt::doing(std::string what) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(what);
}

}  // namespace weft::core
