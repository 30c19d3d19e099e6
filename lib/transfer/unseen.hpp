// Ends that the application has not looked at: of transfers that were over before it had them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace weft::core {

/// How many there are, of all transfers of an engine.
using UnseenEnds = std::atomic<std::size_t>;

/// Of one transfer. The count may outlive its engine.
class UnseenEnd {
 public:
  UnseenEnd() = default;
  /// What nobody can look at any more is no longer waited for either.
  ~UnseenEnd() { see(); }
  UnseenEnd(const UnseenEnd&) = delete;
  UnseenEnd& operator=(const UnseenEnd&) = delete;

  /// Before the application has the transfer.
  void count_in(std::shared_ptr<UnseenEnds> all) {
    ++*all;
    all_ = std::move(all);
  }
  /// From any thread.
  void see() noexcept {
    if (all_ && !seen_.exchange(true, std::memory_order_relaxed)) --*all_;
  }

 private:
  std::shared_ptr<UnseenEnds> all_;
  std::atomic<bool> seen_{false};
};

}  // namespace weft::core
