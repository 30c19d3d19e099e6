// Whether the calling thread does nothing but look.
#pragma once

#include <utility>
#include <weft/deadline.hpp>

namespace weft::nixl {

/// The time that a look may take that makes progress: the caller may have others to look at.
inline constexpr auto longest_look = std::chrono::microseconds(50);

/// To be asked at each look: true if there were eight in a row with at most 20 us between two of
/// them. A server that looks once in each step of its scheduler is not kept waiting.
inline bool polls_closely() {
  constexpr unsigned looks_in_a_row = 8;
  constexpr auto between_looks = std::chrono::microseconds(20);
  thread_local Clock::time_point looked_at;
  thread_local unsigned in_a_row = 0;
  const auto now = Clock::now();
  const bool close = now - std::exchange(looked_at, now) <= between_looks + longest_look;
  in_a_row = close ? in_a_row + 1 : 0;
  return in_a_row >= looks_in_a_row;
}

}  // namespace weft::nixl
