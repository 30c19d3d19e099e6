/// @file
/// The processes of a benchmark: children that are forked, and say their results into pipes.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::perf {

/// Both ends of a pipe.
struct Pipe {
  Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close_end(0), close_end(1); }
  int read_end() const { return fds[0]; }
  int write_end() const { return fds[1]; }
  void close_write() { close_end(1); }
  void close_end(std::size_t end);
  std::array<int, 2> fds{-1, -1};
};

/// A line from a pipe: the other process says everything in one write, and "error ..." where it
/// failed.
Result<std::string> read_line(int fd, Deadline deadline);
void write_line(int fd, std::string_view line);
/// Returns when the other end is closed.
void wait_for_end(int fd);

/// A forked process, which ends when its body does. Killed, if it is still there, when destroyed.
/// The process that forks must not have threads or open engines.
class Side {
 public:
  explicit Side(const std::function<void()>& body);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side();
  pid_t pid() const noexcept { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace weft::perf
