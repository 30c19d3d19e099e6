// Calls that wait on a thread of their own, for event loops.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/sync.hpp"
#include "python/binding/completion.hpp"
#include "python/binding/errors.hpp"
#include "python/binding/objects.hpp"
#include "python/binding/waiting.hpp"

namespace weft::python {

/// A call that is under way. `call` gets a flag that says whether its result is still wanted.
template <typename Made>
class Pending {
 public:
  using Call = std::function<Result<Made>(const std::atomic<bool>& wanted)>;

  explicit Pending(Call call) {
    std::thread([state = state_, call = std::move(call)]() mutable {
      auto made = call(state->wanted);
      call = nullptr;  // What it keeps is gone before anybody hears of the end.
      {
        const core::Lock lock(state->mutex);
        state->made = std::move(made);
      }
      state->completion.end();
    }).detach();
  }
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&&) noexcept = default;
  ~Pending() {
    if (state_) state_->wanted = false;
  }

  Completion& completion() const { return state_->completion; }
  /// After the end.
  Made take() const {
    const core::Lock lock(state_->mutex);
    return must(std::move(*state_->made));
  }

 private:
  struct State {
    std::atomic<bool> wanted{true};
    Completion completion;
    core::Mutex mutex;
    std::optional<Result<Made>> made WEFT_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

using PendingWait = Pending<void>;

/// Calls `wait` in slices until it ends, the deadline passes, or nobody wants its result. It fails
/// with `timed_out` at its deadline, and may be called again.
template <typename Wait>
Result<void> wait_while(const std::atomic<bool>& wanted, Deadline deadline, Wait&& wait) {
  for (;;) {
    const Deadline soon = Deadline::in(slice);
    const bool last = deadline.when() <= soon.when();
    auto waited = wait(last ? deadline : soon);
    if (waited || waited.error().code() != Code::timed_out || last || !wanted) return waited;
  }
}

template <typename Call>
void bind_pending(nanobind::module_& module, const char* name) {
  nanobind::class_<Call> pending(module, name);
  pending.def(
      "wait", [](const Call& self, Seconds) { return self.take(); },
      nanobind::arg("timeout") = nanobind::none());
  bind_end(pending, [](const Call& self) -> Completion& { return self.completion(); });
}

}  // namespace weft::python
