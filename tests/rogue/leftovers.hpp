// What libfabric leaves in /dev/shm when a process that uses it is killed.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

namespace weft::test {

/// Regions of processes that may be killed. Those that are still there are removed with it.
class Leftovers {
 public:
  Leftovers() = default;
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  /// Notes the regions that the process has mapped now.
  void note(pid_t process);

 private:
  std::set<std::string> paths_;
};

}  // namespace weft::test
