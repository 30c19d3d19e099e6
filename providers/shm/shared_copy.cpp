#include "providers/shm/shared_copy.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/pace.hpp"

namespace weft::providers::shm {
namespace {

// Each takes half of a small one, for they agree slowly; of larger ones slices as long as that, the
// last of them one by one, so that in the end the slower one holds up the other for no longer.
constexpr std::size_t most_of_a_slice = std::size_t{64} << 10;
constexpr std::size_t most_slices = 64;

std::size_t slice_of(std::size_t bytes) noexcept {
  const auto part = [bytes](std::size_t parts) {
    const std::size_t exact = (bytes + parts - 1) / parts;
    return (exact + cache_line - 1) / cache_line * cache_line;  // no line is written by both
  };
  return std::max(part(most_slices), std::min(most_of_a_slice, part(2)));
}

// Most that is taken in a row: as much as a core copies in some 20 us.
unsigned most_in_a_row(std::size_t slice) noexcept {
  constexpr std::size_t most = std::size_t{512} << 10;
  return static_cast<unsigned>(std::max(most / slice, std::size_t{1}));
}

// A thread that is woken up comes some 5 us later, when half of a copy as large as this is still to
// be made, and goes on looking for 100 us (Config::spin), in which smaller ones come that are as
// close together as this.
constexpr std::size_t worth_waking = std::size_t{512} << 10;
constexpr auto close_together = std::chrono::microseconds(50);
constexpr auto between_wakings = std::chrono::milliseconds(1);
// After so many looks (at 5 ns as long as a slice takes, at 50 a helper has lost its core by then)
// the waiting thread sleeps between them.
constexpr int patience = 1000;
constexpr auto rest = std::chrono::microseconds(50);

Clock::rep count(Clock::time_point when) noexcept {
  return when.time_since_epoch().count();
}

}  // namespace

void SharedCopy::copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes < least || !attended_.load(std::memory_order_relaxed) ||
      taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire)) {
    std::memcpy(to, from, bytes);
    return;
  }
  offer(to, from, bytes);
  copy_from_front(to, from, bytes);
  await_helper();
  taken_.store(false, std::memory_order_release);
}

void SharedCopy::offer(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t slice = slice_of(bytes);
  to_.store(to, std::memory_order_relaxed);
  from_.store(from, std::memory_order_relaxed);
  bytes_.store(bytes, std::memory_order_relaxed);
  slice_.store(slice, std::memory_order_relaxed);
  copied_from_back_.store(0, std::memory_order_relaxed);
  const std::uint64_t copies = slices_.load(std::memory_order_relaxed) / one_copy;
  const std::uint64_t count = (bytes + slice - 1) / slice;
  slices_.store((copies + 1) * one_copy + count * one_slice, std::memory_order_release);
}

void SharedCopy::copy_from_front(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t slice = slice_.load(std::memory_order_relaxed);
  const unsigned most = most_in_a_row(slice);
  Slices slices{slices_.load(std::memory_order_relaxed)};
  while (slices.left() > 0) {
    const unsigned taken = slices.portion(most);
    if (!slices_.compare_exchange_weak(slices.word, slices.word + taken * one_of_front,
                                       std::memory_order_relaxed))
      continue;
    const std::size_t begin = slices.front() * slice;
    std::memcpy(to + begin, from + begin, std::min(taken * slice, bytes - begin));
    slices.word = slices_.load(std::memory_order_relaxed);
  }
}

bool SharedCopy::help() noexcept {
  Slices slices{slices_.load(std::memory_order_acquire)};
  if (slices.left() == 0) return false;
  // They are of this copy if a slice of it can be taken after they were read.
  std::byte* const to = to_.load(std::memory_order_relaxed);
  const std::byte* const from = from_.load(std::memory_order_relaxed);
  const std::size_t bytes = bytes_.load(std::memory_order_relaxed);
  const std::size_t slice = slice_.load(std::memory_order_relaxed);
  const std::uint64_t copy = slices.word / one_copy;
  const unsigned most = most_in_a_row(slice);
  unsigned taken = slices.portion(most);
  while (!slices_.compare_exchange_weak(slices.word, slices.word + taken * one_of_back,
                                        std::memory_order_acq_rel, std::memory_order_acquire)) {
    if (slices.left() == 0 || slices.word / one_copy != copy) return true;
    taken = slices.portion(most);
  }
  const std::size_t end = (slices.all() - slices.back()) * slice, begin = end - taken * slice;
  std::memcpy(to + begin, from + begin, std::min(end, bytes) - begin);
  copied_from_back_.fetch_add(taken, std::memory_order_release);
  return true;
}

void SharedCopy::await_helper() noexcept {
  const unsigned slices = Slices{slices_.load(std::memory_order_relaxed)}.back();
  for (int look = 0; copied_from_back_.load(std::memory_order_acquire) != slices; ++look) {
    if (look == patience) return await_late_helper(slices);
    core::relax();
  }
}

/// As bounded as a copy is: a thread that has taken slices copies them before anything else, and
/// may need this core for it.
void SharedCopy::await_late_helper(unsigned slices) noexcept {
  while (copied_from_back_.load(std::memory_order_acquire) != slices)
    std::this_thread::sleep_for(rest);
}

void SharedCopy::attend(bool attends) noexcept {
  attended_.store(attends, std::memory_order_seq_cst);
}

bool SharedCopy::is_worth_waking(std::size_t bytes, Clock::time_point now) noexcept {
  const auto last = last_alone_.exchange(count(now), std::memory_order_relaxed);
  if (bytes < worth_waking) {
    if (count(now - close_together) > last) return false;
    if (count(now) < next_waking_.load(std::memory_order_relaxed)) return false;
    next_waking_.store(count(now + between_wakings), std::memory_order_relaxed);
  }
  attended_.store(true, std::memory_order_seq_cst);  // soon; before it is seen whether it sleeps
  return true;
}

}  // namespace weft::providers::shm
