// Lets public calls in until the engine closes, and counts those that are under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <weft/error.hpp>

#include "base/process.hpp"

namespace weft::core {

/// From any thread.
class CallGate {
 public:
  /// Every public call holds one of these: rails stay open until it is done.
  class Call {
   public:
    explicit Call(CallGate& gate) : gate_(gate) { ++gate_.calls_; }
    ~Call() {
      --gate_.calls_;
      if (gate_.closing_) gate_.calls_.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// Why the call can't be served: a forked child, or a closed engine.
    std::optional<Error> refused() const {
      if (gate_.forked()) return forked_error();
      if (gate_.closing_) return Error(Code::closed, "the engine is closed");
      return std::nullopt;
    }

   private:
    CallGate& gate_;
  };

  bool forked() const noexcept { return fork_generation() != fork_generation_; }
  bool closing() const noexcept { return closing_; }
  /// Calls are refused from now on. False: they were already.
  bool close() noexcept { return !closing_.exchange(true); }
  /// After close(): waits for the calls under way. They end soon, since whatever they wait for has
  /// been told that the engine closes.
  void wait_empty() const noexcept {
    for (std::uint32_t calls = calls_; calls > 0; calls = calls_) calls_.wait(calls);
  }

 private:
  const std::uint64_t fork_generation_ = core::fork_generation();
  std::atomic<bool> closing_{false};
  std::atomic<std::uint32_t> calls_{0};
};

}  // namespace weft::core
