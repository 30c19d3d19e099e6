// Whether two engines use one name at the same time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <weft/deadline.hpp>

namespace weft::core {

/// The incarnations of one name that others have taken the place of. One that is restarted never
/// comes back; one that comes back has a namesake.
class Namesakes {
 public:
  static constexpr auto window = std::chrono::minutes(1);

  /// Whether there are two: the second one comes back after the first has taken its place.
  bool replaced(std::uint64_t incarnation, std::uint64_t by, Clock::time_point now) {
    while (!replaced_.empty() && now - replaced_.front().when > window) replaced_.pop_front();
    const bool back = std::any_of(replaced_.begin(), replaced_.end(),
                                  [&](const Replaced& each) { return each.incarnation == by; });
    replaced_.push_back({incarnation, now});
    return back;
  }
  /// How often within the last minute.
  std::size_t count() const noexcept { return replaced_.size(); }
  /// Once for each minute.
  bool is_to_be_told(Clock::time_point now) {
    if (now < told_again_) return false;
    told_again_ = now + window;
    return true;
  }

 private:
  struct Replaced {
    std::uint64_t incarnation;
    Clock::time_point when;
  };
  std::deque<Replaced> replaced_;
  Clock::time_point told_again_ = Clock::time_point::min();
};

}  // namespace weft::core
