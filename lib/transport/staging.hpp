// Copies between devices' memory and bounce buffers that are under way, with what follows each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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
    if (lanes_.contains(&device)) return {};
    auto out = device.open_queue();
    if (!out) return fail(std::move(out.error()));
    auto in = device.open_queue();
    if (!in) return fail(std::move(in.error()));
    Lanes& lanes = lanes_[&device];
    lanes.out.queue = std::move(*out);
    lanes.in.queue = std::move(*in);
    return {};
  }

  /// Out of the device's memory, and into it: each one after the other, and beside each other.
  Result<void> copy_out(const Device& device, void* to, const void* from, std::size_t bytes,
                        Then then) {
    return begin(device, &Lanes::out, to, from, bytes, std::move(then));
  }
  Result<void> copy_in(const Device& device, void* to, const void* from, std::size_t bytes,
                       Then then) {
    return begin(device, &Lanes::in, to, from, bytes, std::move(then));
  }

  /// Calls `next(Then&&)` for each copy that has ended; returns how many. Where a device has failed
  /// nobody knows whether its copies have ended: `lost(const Then&, const Error&)` is called for
  /// each of them once, and they are under way for ever.
  template <typename Next, typename Lost>
  std::size_t progress(Next&& next, Lost&& lost) {
    std::size_t ended = 0;
    if (under_way_ == 0) return ended;
    for (auto& [device, lanes] : lanes_)
      ended += progress(lanes.out, next, lost) + progress(lanes.in, next, lost);
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
  struct Lane {
    std::unique_ptr<CopyQueue> queue;
    std::deque<std::pair<std::uint64_t, Then>> copies;  // oldest first
    bool failed = false;
  };
  struct Lanes {
    Lane out, in;
  };

  Result<void> begin(const Device& device, Lane Lanes::*way, void* to, const void* from,
                     std::size_t bytes, Then&& then) {
    const auto lanes = lanes_.find(&device);
    if (lanes == lanes_.end()) return fail(Code::internal, "the device is not served");
    Lane& lane = lanes->second.*way;
    auto number = lane.queue->copy(to, from, bytes);
    if (!number) return fail(std::move(number.error()));
    lane.copies.emplace_back(*number, std::move(then));
    ++under_way_;
    return {};
  }

  template <typename Next, typename Lost>
  std::size_t progress(Lane& lane, Next& next, Lost& lost) {
    if (lane.copies.empty() || lane.failed) return 0;
    const auto ended = lane.queue->ended();
    if (!ended) {
      lane.failed = true;  // and no other copy begins
      for (const auto& [number, then] : lane.copies) lost(then, ended.error());
      return 0;
    }
    std::size_t count = 0;
    // What follows may begin other copies, in this lane as well.
    while (!lane.copies.empty() && lane.copies.front().first <= *ended) {
      Then then = std::move(lane.copies.front().second);
      lane.copies.pop_front();
      --under_way_;
      ++count;
      next(std::move(then));
    }
    return count;
  }

  std::map<const Device*, Lanes> lanes_;
  std::size_t under_way_ = 0;
};

}  // namespace weft::core
