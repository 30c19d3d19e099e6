// One way to a peer that is being tried: a call of connect(), or one that keeps a link.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "control/control.hpp"

namespace weft::core {

class Attempt {
 public:
  using Then = std::function<void(const Result<LinkId>&)>;
  /// `keep`: the link is made anew whenever it ends. `then` hears the result, once, from the thread
  /// that calls finish(); may be empty.
  Attempt(std::string address, Deadline deadline, bool keep = false, Then then = {})
      : address(std::move(address)), deadline(deadline), keep(keep), then_(std::move(then)) {}

  /// Waits for the result, at most until the deadline.
  Result<LinkId> wait();
  /// The first result counts.
  void finish(Result<LinkId> result);
  bool finished() const;
  /// What the attempt is doing, for the error if the deadline passes: "resolving the name".
  void doing(std::string what);

  const std::string address;
  const Deadline deadline;
  const bool keep;

 private:
  const Then then_;
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Result<LinkId>> result_ WEFT_GUARDED_BY(mutex_);
  std::string doing_ WEFT_GUARDED_BY(mutex_) = "starting";
};

using AttemptPtr = std::shared_ptr<Attempt>;

}  // namespace weft::core
