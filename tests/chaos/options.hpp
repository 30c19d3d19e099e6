// What a campaign is asked to be.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace weft::chaos {

struct Options {
  std::uint64_t seed = 1;
  double minutes = 0.25;
  std::uint64_t steps = 0;  // 0: as many as the time allows
  unsigned nodes = 5;
  std::string carrier = "tcp";
  std::set<std::string> without;  // kinds of steps that are not taken
  bool verbose = false;
  /// Succeed only if the campaign finds one of these kinds of violations: for broken builds.
  std::vector<std::string> caught_by;
};

}  // namespace weft::chaos
