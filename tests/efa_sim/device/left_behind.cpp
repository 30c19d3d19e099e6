#include "left_behind.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic.hpp"

namespace weft::efa_sim {

void remove_left_behind(const QueuePair& queue_pair) {
  char gid[INET6_ADDRSTRLEN];
  if (inet_ntop(AF_INET6, queue_pair.nic.gid.data(), gid, sizeof gid) == nullptr) return;
  // As prov/efa/src names it (efa_shm_ep_name_construct), libfabric 1.17 to 2.6.
  shm_unlink(fmt::format("/{}_{:04x}_{:08x}_{:04x}", gid, queue_pair.number, queue_pair.queue_key,
                         getuid())
                 .c_str());
}

}  // namespace weft::efa_sim
