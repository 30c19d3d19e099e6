// How reads and writes of files are begun, and how their ends are learnt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <weft/deadline.hpp>

namespace weft::core {

/// One read or write. It stays where it is, with its memory, until it has ended.
struct Io {
  int fd = -1;
  bool write = false;
  bool durable = false;  // a write ends when the device has the bytes for good
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint64_t at = 0;     // in the file
  void* owner = nullptr;    // for the one that begins it
  std::int64_t result = 0;  // once it has ended: bytes, or a negative errno
};

/// Used by one thread at a time, but for wait().
class IoChannel {
 public:
  /// Does not wait: what is under way goes on.
  virtual ~IoChannel() = default;
  /// False: there is no room now.
  virtual bool begin(Io& io) = 0;
  /// Hands on what was begun since the last call.
  virtual void flush() {}
  /// Those that have ended since the last call, as many as fit; returns how many.
  virtual std::size_t ended(std::span<Io*> into) = 0;
  /// Waits for a completion that ended() has not returned, at most until the deadline. From any
  /// thread, beside the other calls.
  virtual void wait(Deadline deadline) = 0;
};

/// By io_uring where the kernel and the process's filters let it, else by threads.
std::unique_ptr<IoChannel> open_io_channel();
/// Threads that call pread and pwrite.
std::unique_ptr<IoChannel> open_io_threads();
/// "io_uring", or "threads: io_uring is refused: Operation not permitted". It tells both where some
/// channels got no ring.
std::string io_channel_name();

/// For tests: what makes the channels of this process from now on; empty: as above.
using MakeIoChannel = std::function<std::unique_ptr<IoChannel>()>;
void make_io_channels_by(MakeIoChannel make);

}  // namespace weft::core
