// What a Transfer handle stands for.
#pragma once

#include <atomic>
#include <optional>
#include <vector>
#include <weft/transfer.hpp>

namespace weft::core {

class PreparedState;

/// From any thread.
class Submitted {
 public:
  virtual ~Submitted() = default;

  virtual const PreparedState& prepared() const noexcept = 0;
  virtual State state() const noexcept = 0;
  bool ended() const noexcept { return state() != State::active; }
  virtual std::optional<Error> error() const = 0;
  virtual bool quiescent() const = 0;
  virtual void cancel() = 0;
  virtual Report report() const = 0;
  virtual std::vector<Placed> placed() const = 0;
  /// By a thread that is about to wait for it: carries of it what it can, until the deadline.
  virtual void take_part(Deadline) {}
  /// False if the deadline passed first.
  virtual bool wait_ended(Deadline deadline) const = 0;
  virtual bool wait_quiescent(Deadline deadline) const = 0;
  /// The application looks at it.
  virtual void see() noexcept = 0;
  /// It begins to wait for it; only the first time says something.
  void await(Deadline deadline) noexcept {
    if (awaited_.load(std::memory_order_relaxed)) return;
    awaited_.store(true, std::memory_order_relaxed);
    await_first(deadline);
  }

 private:
  virtual void await_first(Deadline deadline) noexcept = 0;

  std::atomic<bool> awaited_{false};
};

}  // namespace weft::core
