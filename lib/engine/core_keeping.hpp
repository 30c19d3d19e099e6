// When a progress thread keeps to one core.
#pragma once

#include <cstdint>
#include <optional>
#include <weft/deadline.hpp>

#include "topo/machine.hpp"

namespace weft::core {

/// What a thread has carried since it began, as far as it knows: a target sees nothing of what its
/// peers write here or read.
struct Carried {
  std::uint64_t operations = 0, bytes = 0;  // its own, ended
  std::uint64_t messages = 0;               // Messenger::messages_to_part_for()
};

/// Whether it was small things, of late.
class SmallTraffic {
 public:
  /// Whether it is time to judge it again.
  bool due(Clock::time_point now) const noexcept { return now - since_ >= span; }
  bool operator()(Clock::time_point now, const Carried& carried) {
    if (!due(now)) return small_;
    const std::uint64_t operations = carried.operations - before_.operations;
    const std::uint64_t messages = carried.messages - before_.messages;
    if (operations > 0) {
      small_ = carried.bytes - before_.bytes <= small_bytes * operations;
      seen_at_ = now;
    } else if (messages >= many) {
      small_ = true;
      seen_at_ = now;
    } else if (now - seen_at_ >= memory) {
      small_ = false;
    }
    since_ = now;
    before_ = carried;
    return small_;
  }

 private:
  // Operations of 16 KiB are faster on two cores, those of 64 KiB on one.
  static constexpr std::uint64_t small_bytes = std::uint64_t{16} << 10;
  static constexpr Nanoseconds span = std::chrono::milliseconds(1);
  // Messages in a span; one by one over tcp they are 40 and more.
  static constexpr std::uint64_t many = 16;
  static constexpr Nanoseconds memory = std::chrono::milliseconds(20);

  Clock::time_point since_{}, seen_at_{};
  Carried before_;
  bool small_ = false;
};

/// Where both ends of a stream take turns on one core, the bytes under way stay in that core's
/// cache, and other streams have the other cores. But to take turns costs more than it gives while
/// a thread carries what is small: then it goes to the other cores. Where others compute, each core
/// that it may have is one more that may be given to it soon. Of the thread itself.
class CoreKeeping {
 public:
  /// `core`: which of those that the process may use, counted on beyond the last; none: any.
  explicit CoreKeeping(std::optional<unsigned> core) {
    if (core) core_.emplace(*core);
  }
  /// Whether it wants to know, after a round, what was carried.
  bool due(Clock::time_point now) const noexcept { return core_ && small_.due(now); }
  /// When that is due. `crowded`: others compute on the thread's core.
  void operator()(Clock::time_point now, const Carried& carried, bool crowded) {
    using Use = topo::OneCore::Use;
    const bool small = small_(now, carried);
    core_->use(crowded ? Use::all : small ? Use::others : Use::this_one);
  }

 private:
  std::optional<topo::OneCore> core_;
  SmallTraffic small_;
};

}  // namespace weft::core
