// A stream: work in the order in which it was queued, done by a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <random>

#include "driver/work.hpp"

namespace weft::cuda_sim {

enum class Role { created, legacy, per_thread };  // the last two: a context's default streams

}  // namespace weft::cuda_sim

namespace weft::core::cuda {

// All of it under the simulator's mutex.
struct StreamObject : std::enable_shared_from_this<StreamObject> {
  StreamObject(Context context, unsigned flags, weft::cuda_sim::Role role, std::uint64_t number);
  /// Starts the thread, which ends when the stream is closed and empty, or the process ends. Throws
  /// std::system_error.
  void start();
  weft::cuda_sim::MarkerPtr queue(weft::cuda_sim::Work work);
  bool idle() const { return !last || last->ended; }
  /// No handle leads to it any more; it ends what it has.
  void close();
  bool closed() const { return closed_; }
  void hold() { held_ = true; }
  void release();
  void step(unsigned count);
  /// To be called when something that the work may wait for has changed.
  void nudge();

  const Context context;
  const unsigned flags;
  const weft::cuda_sim::Role role;
  weft::cuda_sim::MarkerPtr last;  // of what was queued last

 private:
  void work();
  bool next(weft::cuda_sim::Lock& lock);
  bool runnable() const;
  bool finds_queue() const;
  bool waits_for_value() const;
  void run(weft::cuda_sim::Work work, weft::cuda_sim::Lock& lock);
  void come_late(weft::cuda_sim::Lock& lock);
  void put_in_order(weft::cuda_sim::Work& work) const;
  void record(const weft::cuda_sim::Work& work, weft::cuda_sim::Phase phase, Status status);

  std::condition_variable wake_;
  std::deque<weft::cuda_sim::Work> queue_;
  bool closed_ = false, held_ = false;
  std::uint64_t steps_ = 0;
  const std::uint64_t number_;
  std::uint64_t begun_ = 0;
};

}  // namespace weft::core::cuda

namespace weft::cuda_sim {

using StreamPtr = std::shared_ptr<StreamObject>;

/// The stream that a handle stands for, which may be a default one of the current context. Throws
/// Failure when it is none of the current context's.
StreamObject& stream_of(Stream handle, Lock& lock);
/// Of any context's. Throws Failure when there is no such stream.
Context context_of(Stream handle);
StreamPtr make_stream(Context context, unsigned flags, Role role = Role::created);
/// Blocks until the work has ended. Throws Failure when the process ends meanwhile.
void wait_for(const MarkerPtr& marker, Lock& lock);

}  // namespace weft::cuda_sim
