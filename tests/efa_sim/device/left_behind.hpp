// What libfabric's efa provider leaves on the machine when its process is killed.
#pragma once

#include "queue_pair.hpp"

namespace weft::efa_sim {

/// Removes the shared memory by which the endpoint of that queue pair was reached from its own
/// host, 16 MiB. For those whose process has ended, or can't reach the device any more.
void remove_left_behind(const QueuePair& queue_pair);

}  // namespace weft::efa_sim
