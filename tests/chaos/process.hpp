// A node's process as the director sees it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "line.hpp"

namespace weft::chaos {

/// Killed, if it still runs, when destroyed.
class Process {
 public:
  /// Starts this program again, as a node. Throws std::system_error.
  explicit Process(const std::string& name);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Line& line() noexcept { return *line_; }
  pid_t id() const noexcept { return id_; }
  void signal(int number) const;
  /// Waits for its end, in words; one that does not come is brought about.
  std::string end();

 private:
  pid_t id_ = -1;
  int watch_ = -1;  // readable when it has ended
  bool over_ = false;
  std::unique_ptr<Line> line_;
};

}  // namespace weft::chaos
