// Calls and copies that fail because a test wants them to.
#pragma once

#include <map>
#include <set>
#include <string>

#include "interface/status.hpp"

namespace weft::cuda_sim {

class Faults {
 public:
  /// The nth from now (1: the next) of that name, an entry point's without "_v2" or "copy", fails.
  void plan(const std::string& name, unsigned nth, Status status);
  /// Reads "name:nth:status" with commas between.
  void plan(const std::string& text);
  /// Called for each of that name: what it must give, `success` if nothing is planned.
  Status strike(std::string name);
  /// From here on, or no longer, calls of that entry point block.
  void block(const std::string& name, bool block);
  bool blocks(const std::string& name) const;

 private:
  struct Plan {
    unsigned left;
    Status status;
  };
  std::map<std::string, Plan> plans_;
  std::set<std::string> blocked_;
};

}  // namespace weft::cuda_sim
