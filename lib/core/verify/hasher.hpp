// The engine's one thread for hashing memory: neither progress threads nor the control thread may
// spend their time on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "base/sync.hpp"
#include "base/xxh3.hpp"
#include "device/device.hpp"

namespace weft::core {

/// From any thread. The thread is started when it is first needed. Jobs take turns, slice by slice,
/// so that small ones do not wait for large ones. Their number is bounded by the callers.
class Hasher {
 public:
  struct Job {
    const Device* device = nullptr;
    const std::byte* base = nullptr;
    std::vector<Range> ranges;  // from `base`, hashed as if they were one
    /// Asked before each slice, which is the only time when memory is touched.
    std::function<bool()> wanted;
    /// Called once, on the hasher's thread, with the hash, or why there is none. `stale`: it was
    /// not wanted any more, or the hasher stops.
    std::function<void(const Result<std::uint64_t>&)> done;
  };
  /// The most bytes that are touched between two questions: a fraction of a millisecond's work.
  static constexpr std::size_t slice = std::size_t{4} << 20;

  Hasher() = default;
  ~Hasher() { stop(); }
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  /// Fails if there is no thread for it, and never will be; then `done` is not called.
  Result<void> add(Job job);
  /// Waits for the end of the slice that is under way, if there is one: afterwards only memory
  /// whose jobs are still wanted is touched. False if the deadline passed first.
  bool settle(Deadline deadline);
  /// Ends the thread after its slice.
  void stop();

 private:
  struct Work {
    Job job;
    Xxh3 hash;
    std::size_t next = 0;     // range
    std::uint64_t begun = 0;  // bytes of it that are hashed already
  };
  using Works = std::deque<std::unique_ptr<Work>>;

  void loop();
  static Result<bool> do_slice(Work& work);

  Mutex mutex_;
  Condition changed_;
  Works waiting_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t slices_ WEFT_GUARDED_BY(mutex_) = 0;  // begun
  bool slicing_ WEFT_GUARDED_BY(mutex_) = false;
  bool stopping_ WEFT_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started with the lock held, joined once stopping_ is set
};

}  // namespace weft::core
