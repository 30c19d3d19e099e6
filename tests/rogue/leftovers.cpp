#include "leftovers.hpp"

#include <unistd.h>

#include <fstream>

namespace weft::test {

void Leftovers::note(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find("/dev/shm/");
    // Those that were removed already end in "(deleted)".
    if (path != std::string::npos && !line.ends_with(')')) paths_.insert(line.substr(path));
  }
}

Leftovers::~Leftovers() {
  for (const std::string& path : paths_) unlink(path.c_str());
}

}  // namespace weft::test
