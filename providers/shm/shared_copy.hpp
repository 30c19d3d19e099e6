// A copy that two threads share: the one that needs it, and the one that polls the endpoint, if it
// happens to look.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/deadline.hpp>

#include "providers/shm/region.hpp"

namespace weft::providers::shm {

/// One copy at a time; a thread that finds it taken copies alone. The copier takes slices from the
/// front and the helper from the back, so that in buffers that are used again and again each finds
/// its half in its own cache.
class SharedCopy {
 public:
  /// By any thread. Comes back when all has been copied, by whomever.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

  /// By the thread that polls: from now on it does, or is about to sleep. Copies are offered only
  /// where a thread may look.
  void attend(bool attends) noexcept;
  /// By the same: takes part in what is being copied just now. Whether there was something.
  bool help() noexcept;

  /// By any thread, before a copy: whether the polling thread sleeps and has to be woken up now.
  bool wants_help(std::size_t bytes) noexcept {
    return bytes >= least && !attended_.load(std::memory_order_acquire) &&
           is_worth_waking(bytes, Clock::now());
  }
  /// It is for a large copy, and once in a while where several come close together. Of a copy at
  /// that time.
  bool is_worth_waking(std::size_t bytes, Clock::time_point now) noexcept;

  /// Of smaller ones too little is left when another thread has seen them: a cache line takes 50 to
  /// 400 ns from core to core and back.
  static constexpr std::size_t least = std::size_t{64} << 10;

 private:
  /// What is left of a copy, in one word: which copy of all it is (the upper 40 bits), how many
  /// slices it has, and how many were taken from the front and from the back.
  struct Slices {
    std::uint64_t word;
    unsigned all() const noexcept { return word >> 16 & 0xff; }
    unsigned front() const noexcept { return word >> 8 & 0xff; }
    unsigned back() const noexcept { return word & 0xff; }
    unsigned left() const noexcept { return all() - front() - back(); }
    /// How many a thread takes in a row: several as long as there are many, because each time
    /// this word has to come from the other's core; single ones at the end, where one waits for the
    /// other.
    unsigned portion(unsigned most) const noexcept { return std::clamp(left() / 4, 1U, most); }
  };
  static constexpr std::uint64_t one_copy = 1 << 24, one_slice = 1 << 16, one_of_front = 1 << 8,
                                 one_of_back = 1;

  void offer(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  void copy_from_front(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
  void await_helper() noexcept;
  void await_late_helper(unsigned slices) noexcept;

  std::atomic<bool> attended_{false};
  using Time = std::atomic<Clock::rep>;
  Time last_alone_{0};   // a copy without a helper
  Time next_waking_{0};  // not before

  alignas(cache_line) std::atomic<bool> taken_{false};
  // What is offered, in one line. All but `slices_` is written before there are slices, and not as
  // long as there are some.
  alignas(cache_line) std::atomic<std::uint64_t> slices_{0};
  std::atomic<std::byte*> to_{nullptr};
  std::atomic<const std::byte*> from_{nullptr};
  std::atomic<std::size_t> bytes_{0}, slice_{0};
  alignas(cache_line) std::atomic<unsigned> copied_from_back_{0};
};

}  // namespace weft::providers::shm
