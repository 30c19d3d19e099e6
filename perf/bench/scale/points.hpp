// What the engine costs at one count of peers, of segments, of blocks or of rails. Rails move
// nothing, everything else is real.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

namespace weft::perf {

/// Of one unit: a peer that is met, a segment that is added, a transfer that is carried.
struct Cost {
  double ns = 0;
  double bytes = 0;        ///< That stay allocated.
  double resident = 0;     ///< Bytes of pages that were touched and are kept.
  double allocations = 0;  ///< By operator new.
};

/// By what was done.
using Costs = std::map<std::string, Cost>;

struct Dimension {
  std::string name;
  std::string meaning;
  std::vector<std::size_t> counts;  ///< That are measured if nobody asks for others.
  std::size_t most;
  Result<Costs> (*measure)(std::size_t count, Deadline deadline);
};

/// The calling process must not have threads or open engines, and be a fresh one for each point:
/// what is left of one would be counted to the next.
const std::vector<Dimension>& dimensions();

}  // namespace weft::perf
