// Copies between devices' memory and host memory that are under way, with what follows each.
#pragma once

#include <algorithm>
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
    if (queues_.contains(&device)) return {};
    auto out = device.open_queue();
    if (!out) return fail(std::move(out.error()));
    auto in = device.open_queue();
    if (!in) return fail(std::move(in.error()));
    Queues& queues = queues_[&device];
    queues.out.device = std::move(*out);
    queues.in.device = std::move(*in);
    return {};
  }

  using Copies = std::span<const Copy>;  // one at least
  /// Out of the device's memory, and into it. The two ways overlap. `then` follows the last of the
  /// copies. An error: none of them is under way.
  Result<void> copy_out(const Device& device, Copies copies, Priority priority, Then then) {
    return begin(device, &Queues::out, copies, priority, std::move(then));
  }
  Result<void> copy_in(const Device& device, Copies copies, Priority priority, Then then) {
    return begin(device, &Queues::in, copies, priority, std::move(then));
  }

  /// Calls `next(Then&&, const std::optional<Error>&)` for each that has ended, with the error if
  /// some of its copies failed or could not even begin; returns how many. Where a device has
  /// failed, or does not answer, nothing tells whether its copies have ended: `lost(const Then&,
  /// const Error&)` is called for each of them once, and they are under way until it answers.
  template <typename Next, typename Lost>
  std::size_t progress(Next&& next, Lost&& lost) {
    std::size_t ended = 0;
    if (under_way_ == 0) return ended;
    for (auto& [device, queues] : queues_)
      ended += progress(queues.out, next, lost) + progress(queues.in, next, lost);
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
  struct Queue {
    std::unique_ptr<CopyQueue> device;
    std::deque<UnderWay> copies;  // oldest first
    bool failed = false;
  };
  struct Queues {
    Queue out, in;
  };

  Result<void> begin(const Device& device, Queue Queues::*way, Copies copies, Priority priority,
                     Then&& then) {
    const auto queues = queues_.find(&device);
    if (queues == queues_.end()) return fail(Code::internal, "the device is not served");
    Queue& queue = queues->second.*way;
    auto begun = queue.device->copy(copies, priority);
    if (begun.copies == 0) return fail(std::move(*begun.error));
    queue.copies.push_back({begun.number, std::move(then), std::move(begun.error)});
    ++under_way_;
    return {};
  }

  template <typename Next, typename Lost>
  std::size_t progress(Queue& queue, Next& next, Lost& lost) {
    if (queue.copies.empty() || queue.failed) return 0;
    const auto ended = queue.device->ended();
    if (!ended) {
      queue.failed = true;  // and no other copy begins
      for (const UnderWay& each : queue.copies) lost(each.then, ended.error());
      return 0;
    }
    std::size_t count = tell_news(queue, next, lost);
    // What follows may begin other copies, in this queue as well.
    while (!queue.copies.empty() && queue.copies.front().number <= *ended) {
      UnderWay over = std::move(queue.copies.front());
      queue.copies.pop_front();
      --under_way_;
      ++count;
      next(std::move(over.then), over.error);
    }
    return count;
  }

  template <typename Next, typename Lost>
  std::size_t tell_news(Queue& queue, Next& next, Lost& lost) {
    std::size_t count = 0;
    for (CopyQueue::News& each : queue.device->news()) {
      const auto found =
          std::find_if(queue.copies.begin(), queue.copies.end(),
                       [&](const UnderWay& copy) { return copy.number == each.number; });
      if (found == queue.copies.end()) continue;
      ++count;
      if (!each.over) {
        lost(found->then, *each.error);
        continue;
      }
      UnderWay over = std::move(*found);
      queue.copies.erase(found);
      --under_way_;
      next(std::move(over.then), each.error ? each.error : over.error);
    }
    return count;
  }

  std::map<const Device*, Queues> queues_;
  std::size_t under_way_ = 0;
};

}  // namespace weft::core
