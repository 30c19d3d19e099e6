// The threads that copy by an shm endpoint at a time.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/thread.hpp"
#include "providers/shm/neighbour.hpp"
#include "providers/shm/region.hpp"

namespace weft::providers::shm {

/// Each keeps at hand what it needed last, so that threads do not meet in what the endpoint's
/// threads share. From any thread.
class Copiers {
 public:
  struct alignas(cache_line) Copier {
    // By the thread that has taken it: its last neighbour, and how many were removed by then.
    std::shared_ptr<Neighbour> neighbour;
    std::uint64_t removals = 0;
    std::atomic<bool> taken{false};
  };

  /// One of them, or none, for as long as this lasts.
  class Turn {
   public:
    Turn() = default;
    Turn(Copier& copier, std::size_t number) : copier_(&copier), number_(number) {}
    ~Turn() {
      if (copier_ != nullptr) copier_->taken.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    explicit operator bool() const noexcept { return copier_ != nullptr; }
    Copier& operator*() const noexcept { return *copier_; }
    std::size_t number() const noexcept { return number_; }

   private:
    Copier* copier_ = nullptr;
    std::size_t number_ = 0;
  };

  /// Never waits: none if all are taken. Threads begin with different ones, and so does every
  /// eighth: those that an endpoint has to itself.
  Turn take() noexcept {
    const std::size_t thread = core::thread_number(), first = thread + thread / copier_count;
    for (std::size_t i = 0; i < copier_count; ++i) {
      const std::size_t number = (first + i) % copier_count;
      if (take(number)) return {copiers_[number], number};
    }
    return {};
  }
  /// Some of them, by their numbers.
  using Set = std::bitset<copier_count>;
  /// Does something in the turn of each of these that is free, and takes it out of the set.
  template <typename Task>
  void visit(Set& left, Task&& task) {
    for (std::size_t number = 0; number < copier_count; ++number) {
      if (!left[number] || !take(number)) continue;
      task(Turn(copiers_[number], number));
      left.reset(number);
    }
  }

 private:
  bool take(std::size_t number) noexcept {
    std::atomic<bool>& taken = copiers_[number].taken;
    return !taken.load(std::memory_order_relaxed) &&
           !taken.exchange(true, std::memory_order_acquire);
  }

  std::array<Copier, copier_count> copiers_;
};

}  // namespace weft::providers::shm
