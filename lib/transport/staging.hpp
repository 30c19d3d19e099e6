// Copies between devices' memory and bounce buffers that are under way, with what follows each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "device/device.hpp"

namespace weft::core {

/// `Then` is what is to be done after a copy. Used by one thread at a time.
template <typename Then>
class Staging {
 public:
  /// Before the first copy of that device's. May block.
  Result<void> serve(const Device& device) {
    if (schedulers_.contains(&device)) return {};
    auto out = device.open_queue();
    if (!out) return fail(std::move(out.error()));
    auto in = device.open_queue();
    if (!in) return fail(std::move(in.error()));
    Lanes& schedulers = schedulers_[&device];
    schedulers.out.queue = std::move(*out);
    schedulers.in.queue = std::move(*in);
    return {};
  }

  using Copies = std::span<const Copy>;  // one at least
  /// Out of the device's memory, and into it: each one after the other, and beside each other.
  /// `then` follows the last of the copies. An error: none of them is under way.
  Result<void> copy_out(const Device& device, Copies copies, Then then) {
    return begin(device, &Lanes::out, copies, std::move(then));
  }
  Result<void> copy_in(const Device& device, Copies copies, Then then) {
    return begin(device, &Lanes::in, copies, std::move(then));
  }

  /// Calls `next(Then&&, const std::optional<Error>&)` for each that has ended, with the error if
  /// some of its copies could not even begin; returns how many. Where a device has failed nobody
  /// knows whether its copies have ended: `lost(const Then&, const Error&)` is called for each of
  /// them once, and they are under way for ever.
  template <typename Next, typename Lost>
  std::size_t progress(Next&& next, Lost&& lost) {
    std::size_t ended = 0;
    if (under_way_ == 0) return ended;
    for (auto& [device, schedulers] : schedulers_)
      ended += progress(schedulers.out, next, lost) + progress(schedulers.in, next, lost);
    return ended;
  }
  std::size_t under_way() const noexcept { return under_way_; }
  /// Waits until no copy is under way any more, with progress() meanwhile. False if one has not
  /// ended by the deadline.
  template <typename Next>
  bool settle(Deadline deadline, Next&& next) {
    // Drivers can't be waited for until a deadline.
    constexpr auto pause = std::chrono::microseconds(50);
    while (true) {
      progress(next, [](const Then&, const Error&) {});
      if (under_way_ == 0) return true;
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  struct UnderWay {
    std::uint64_t number = 0;
    Then then;
    std::optional<Error> error;
  };
  struct RailScheduler {
    std::unique_ptr<CopyQueue> queue;
    std::deque<UnderWay> copies;  // oldest first
    bool failed = false;
  };
  struct Lanes {
    RailScheduler out, in;
  };

  Result<void> begin(const Device& device, RailScheduler Lanes::*way, Copies copies, Then&& then) {
    const auto schedulers = schedulers_.find(&device);
    if (schedulers == schedulers_.end()) return fail(Code::internal, "the device is not served");
    RailScheduler& scheduler = schedulers->second.*way;
    auto begun = scheduler.queue->copy(copies);
    if (begun.copies == 0) return fail(std::move(*begun.error));
    scheduler.copies.push_back({begun.number, std::move(then), std::move(begun.error)});
    ++under_way_;
    return {};
  }

  template <typename Next, typename Lost>
  std::size_t progress(RailScheduler& scheduler, Next& next, Lost& lost) {
    if (scheduler.copies.empty() || scheduler.failed) return 0;
    const auto ended = scheduler.queue->ended();
    if (!ended) {
      scheduler.failed = true;  // and no other copy begins
      for (const UnderWay& each : scheduler.copies) lost(each.then, ended.error());
      return 0;
    }
    std::size_t count = 0;
    // What follows may begin other copies, in this rail as well.
    while (!scheduler.copies.empty() && scheduler.copies.front().number <= *ended) {
      UnderWay over = std::move(scheduler.copies.front());
      scheduler.copies.pop_front();
      --under_way_;
      ++count;
      next(std::move(over.then), over.error);
    }
    return count;
  }

  std::map<const Device*, Lanes> schedulers_;
  std::size_t under_way_ = 0;
};

}  // namespace weft::core
