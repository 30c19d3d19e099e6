#include "control/attempt.hpp"

#include <fmt/core.h>

#include "base/sync.hpp"

namespace weft::core {

Result<LinkId> Attempt::wait() {
  const Lock lock(mutex_);
  if (!changed_.wait(mutex_, deadline,
                     [this]() WEFT_REQUIRES(mutex_) { return result_.has_value(); }))
    result_ =
        fail(Code::timed_out,
             fmt::format("no link with {} when the deadline passed, while {}", address, doing_));
  return *result_;
}

void Attempt::finish(Result<LinkId> result) {
  {
    const Lock lock(mutex_);
    if (result_) return;
    result_ = result;
    changed_.notify_all();
  }
  if (then_) then_(result);
}

bool Attempt::finished() const {
  const Lock lock(mutex_);
  return result_.has_value();
}

void Attempt::doing(std::string what) {
  const Lock lock(mutex_);
  doing_ = std::move(what);
}

}  // namespace weft::core
