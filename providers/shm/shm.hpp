// Weft's own provider for processes of one machine and user. The initiator makes the one copy
// between the two address spaces, through a mapping of the target's memory where that lies behind a
// memfd, else by process_vm_writev or process_vm_readv, where it may. So nothing waits for the
// target, and no lock is shared with it: a process that is killed or stopped harms no other.
// Messages go through rings in memory that both map.
#pragma once

#include <memory>

#include "providers/endpoint.hpp"
#include "providers/provider.hpp"

namespace weft::providers::shm {

/// Adds it to what was seen, with the reason if this machine can't.
void look(std::vector<Seen>& seen);

Capability capability();
Result<std::unique_ptr<Endpoint>> open_endpoint();

}  // namespace weft::providers::shm
