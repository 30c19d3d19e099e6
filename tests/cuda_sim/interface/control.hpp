// How a test leads the stand-in and looks into it. All of it is for this process, and may be called
// from any thread, before cuInit and without a context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interface/status.hpp"

namespace weft::cuda_sim {

enum class Operation {
  copy,
  set,
  record_event,
  wait_event,
  host_function,
  wait_value,
  write_value
};
enum class Direction { none, host_to_host, host_to_device, device_to_host, device_to_device, peer };
inline constexpr std::size_t directions = 6;
enum class Phase { queued, begun, ended };
inline constexpr std::size_t phases = 3;

/// A step in the life of one piece of a stream's work.
struct Record {
  std::uint64_t sequence;  // from one counter for the process; see weft_cuda_sim_sequence
  std::uint64_t work;      // the same for the three records of one piece of work
  Phase phase;
  Operation operation;
  Direction direction;
  Stream stream;
  Address target, source;
  std::size_t bytes;
  bool pageable;  // a copy to or from host memory that is not pinned
  Status status;  // when ended
};

struct Counters {
  std::uint64_t copies[directions], bytes[directions];  // of copies that ended well
  std::uint64_t pageable_copies, pageable_bytes;        // of these, with memory that is not pinned
  std::uint64_t records_lost;                           // the log was full
  std::uint64_t freed_while_open;  // cuMemFree of memory that another process had open
  std::uint64_t flushes;           // cuFlushGPUDirectRDMAWrites
};

extern "C" {
/// Nothing of the stream's runs any more but what has begun. Of the default stream (null), over
/// which the synchronous copies go, this holds for the current context.
void weft_cuda_sim_hold(Stream stream);
void weft_cuda_sim_release(Stream stream);
/// The same for all streams that there are and will be; the default streams are not among them.
void weft_cuda_sim_hold_all();
void weft_cuda_sim_release_all();
/// Lets the next `count` pieces of work of a held stream run, now or when they are queued.
void weft_cuda_sim_step(Stream stream, unsigned count);

/// From now on each piece of work begins late, by a pseudo-random time below the bound, and a copy
/// lands piece by piece. Zero microseconds end it.
void weft_cuda_sim_delay(std::uint64_t seed, unsigned microseconds);

/// The nth call (1: the next) of the entry point from now on gives `status` and does nothing. The
/// name is without "_v2"; "copy" is no entry point but a copy that runs: it ends in the error, and
/// so does all that follows in its context.
void weft_cuda_sim_fail(const char* name, unsigned nth, Status status);
/// Calls of the entry point do not return until it is called again with false. The name is without
/// "_v2".
void weft_cuda_sim_block(const char* name, bool block);
/// How many calls are blocked at the time.
unsigned weft_cuda_sim_blocked();
/// The device is gone: what is under way ends in `status`, and so does every call.
void weft_cuda_sim_lose_device(Ordinal device, Status status);

/// Draws the next number from the counter that also numbers the records.
std::uint64_t weft_cuda_sim_sequence();
/// Copies as many records as there is room for, the oldest first; returns how many there are.
std::size_t weft_cuda_sim_log(Record* records, std::size_t room);
/// Forgets the records and sets the counters to zero.
void weft_cuda_sim_clear();
void weft_cuda_sim_counters(Counters* counters);
/// Waits until that many copies since weft_cuda_sim_clear have reached the phase; false when the
/// time has passed.
bool weft_cuda_sim_await(Phase phase, std::uint64_t copies, unsigned milliseconds);

/// The device memory is from now on as if cuMemMap had put it there: it has a handle, which
/// cuMemRetainAllocationHandle gives. False if there is none at the address.
bool weft_cuda_sim_map(Address address);
/// How many such handles were given and not released.
std::size_t weft_cuda_sim_handles();

/// How many contexts are on the calling thread's stack.
std::size_t weft_cuda_sim_stack_depth();
/// What there is in this process: streams and events not destroyed, and regions of memory
/// (allocated, registered, opened) not freed. For tests that nothing is left behind.
std::size_t weft_cuda_sim_streams();
std::size_t weft_cuda_sim_events();
std::size_t weft_cuda_sim_regions();
/// How often the device's primary context is retained.
unsigned weft_cuda_sim_retained(Ordinal device);
}

}  // namespace weft::cuda_sim
