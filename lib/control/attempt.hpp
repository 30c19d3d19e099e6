// One call of connect(): what its caller waits for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "control/control.hpp"

namespace weft::core {

class Attempt {
 public:
  Attempt(std::string address, Deadline deadline)
      : address(std::move(address)), deadline(deadline) {}

  /// Waits for the result, at most until the deadline.
  Result<LinkId> wait();
  /// The first result counts.
  void finish(Result<LinkId> result);
  bool finished() const;
  /// What the attempt is doing, for the error if the deadline passes: "resolving the name".
  void doing(std::string what);

  const std::string address;
  const Deadline deadline;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Result<LinkId>> result_;
  std::string doing_ = "starting";
};

using AttemptPtr = std::shared_ptr<Attempt>;

}  // namespace weft::core
