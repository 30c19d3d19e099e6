#include "driver/copy.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "driver/simulator.hpp"
#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

struct Side {
  RegionPtr region;  // null: pageable host memory
  Address address;

  bool on_device() const { return region && region->on_device(); }
  std::byte* reach() const {
    return region ? region->reach(address) : reinterpret_cast<std::byte*>(address);
  }
  bool alive() const { return !region || region->alive(); }
  void begin() const {
    if (region) ++region->running;
  }
  void end() const {
    if (region) --region->running;
  }
};

Direction direction_of(const Side& target, const Side& source) {
  if (!target.on_device())
    return source.on_device() ? Direction::device_to_host : Direction::host_to_host;
  if (!source.on_device()) return Direction::host_to_device;
  return target.region->device == source.region->device ? Direction::device_to_device
                                                        : Direction::peer;
}

/// In pieces and from the end, so that nobody rests on the order in which the bytes arrive.
void move_backwards(std::byte* target, const std::byte* source, std::size_t bytes) {
  const std::size_t piece = bytes / 4 + 1;
  for (std::size_t left = bytes; left > 0;) {
    const std::size_t now = std::min(piece, left);
    left -= now;
    std::memcpy(target + left, source + left, now);
    std::this_thread::yield();
  }
}

/// The process's end waits for those that there are; none begins after.
class Touching {
 public:
  Touching() { ++simulator().touching; }
  ~Touching() {
    if (--simulator().touching == 0) simulator().touching.notify_all();
  }
  Touching(const Touching&) = delete;
  Touching& operator=(const Touching&) = delete;
};

template <typename Touch>
bool run_unless_leaving(const Touch& run) {
  const Touching touching;
  if (simulator().leaving) return false;
  run();
  return true;
}

/// Runs what touches memory, without the lock.
template <typename Touch>
Status touch(Lock& lock, const Side& target, const Side& source, const Touch& run) {
  // What was freed or unregistered meanwhile is not there any more: a fault of the device's.
  if (!target.alive() || !source.alive()) return illegal_address;
  target.begin();
  source.begin();
  lock.unlock();
  const bool ran = run_unless_leaving(run);
  lock.lock();
  target.end();
  source.end();
  return ran ? success : deinitialized;
}

Side word_at(Address address) {
  require(address % sizeof(std::uint64_t) == 0);
  Side word{simulator().memory.find(address, sizeof(std::uint64_t)), address};
  require(word.region != nullptr);
  return word;
}

bool is_satisfied(std::uint64_t seen, std::uint64_t value, unsigned flags) {
  switch (flags) {
    case wait_greater_or_equal:
      return static_cast<std::int64_t>(seen - value) >= 0;
    case wait_equal:
      return seen == value;
    case wait_and:
      return (seen & value) != 0;
    default:
      return ~(seen | value) != 0;
  }
}

}  // namespace

Work make_copy(Address target_address, Address source_address, std::size_t bytes, Sides sides) {
  Simulator& s = simulator();
  const Side target{s.memory.find(target_address, bytes), target_address};
  const Side source{s.memory.find(source_address, bytes), source_address};
  require(target.on_device() || !sides.target_on_device);
  require(source.on_device() || !sides.source_on_device);
  Work work{.operation = Operation::copy};
  work.direction = direction_of(target, source);
  work.target = target_address;
  work.source = source_address;
  work.bytes = bytes;
  work.pageable = !target.region || !source.region;
  work.run = [=](Lock& lock) -> Status {
    Simulator& now = simulator();
    if (const Status planned = now.faults.strike("copy"); planned != success) return planned;
    const bool in_pieces = now.delay.microseconds > 0;
    return touch(lock, target, source, [&] {
      if (in_pieces)
        move_backwards(target.reach(), source.reach(), bytes);
      else
        std::memmove(target.reach(), source.reach(), bytes);
    });
  };
  return work;
}

Work make_set(Address address, unsigned char value, std::size_t bytes) {
  const Side target{simulator().memory.find(address, bytes), address};
  require(target.region != nullptr);
  Work work{.operation = Operation::set};
  work.target = address;
  work.bytes = bytes;
  work.run = [=](Lock& lock) {
    return touch(lock, target, {}, [&] { std::memset(target.reach(), value, bytes); });
  };
  return work;
}

Work make_wait_value(Address address, std::uint64_t value, unsigned flags) {
  require(flags <= wait_nor);
  const Side word = word_at(address);
  Work work{.operation = Operation::wait_value};
  work.source = address;
  work.ready = [=] {
    if (!word.alive()) return true;
    const auto* const place = reinterpret_cast<const std::uint64_t*>(word.reach());
    return is_satisfied(__atomic_load_n(place, __ATOMIC_ACQUIRE), value, flags);
  };
  work.run = [=](Lock&) { return word.alive() ? success : illegal_address; };
  return work;
}

Work make_write_value(Address address, std::uint64_t value, unsigned flags) {
  require(flags <= 1);  // without a memory barrier, which can't be told from one with it
  const Side word = word_at(address);
  Work work{.operation = Operation::write_value};
  work.target = address;
  work.run = [=](Lock&) -> Status {
    if (!word.alive()) return illegal_address;
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(word.reach()), value, __ATOMIC_RELEASE);
    return success;
  };
  return work;
}

}  // namespace weft::cuda_sim
