// Processes of this program that it starts as other sides, on this machine.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "common/child.hpp"
#include "protocol/control.hpp"

namespace weft::perf {

struct StartedSide {
  tool::Child child;
  std::string address;  ///< Where it listens.
};

/// One that listens at `host` until its first peer leaves, with this site's timeout, NICs and
/// credentials. `name`: how it is called where it fails.
Result<StartedSide> start_side(const std::string& name, const std::string& host, const Site& site,
                               const std::stop_token& stop);

/// What is still to be done with them when the sweep is over: each ends when its peer leaves, and
/// leaves nothing behind then. One that does not in time is killed with its object.
void let_end(std::vector<StartedSide>& started, Nanoseconds time);

}  // namespace weft::perf
