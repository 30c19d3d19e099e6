// What this process may use of the machine.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::topo {

/// Cores that this process is allowed to run on; at least 1.
unsigned usable_cores();

/// The NUMA nodes of these cores, as the system numbers them; empty where it can't be told.
std::vector<int> usable_nodes();

/// The NUMA node that holds the memory; -1 where it lies on several, has no pages yet, or can't be
/// told.
int numa_node_of(const void* address, std::size_t bytes);

}  // namespace weft::topo
