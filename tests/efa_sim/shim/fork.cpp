// What libibverbs does about forks, on a kernel that takes pinned pages away from a parent
// (the setting "fork"): ibv_fork_init(3).
#include <atomic>
#include <cerrno>

#include "objects.hpp"

namespace weft::efa_sim {
namespace {

std::atomic<bool> safe{false}, too_late{false};

bool forks_harm() {
  const Reply list = Connection::get().ask(request(Verb::list)).message;
  return list.error == 0 && list.list.fork != 0;
}

}  // namespace

void memory_is_registered() {
  if (!safe) too_late = true;
}

}  // namespace weft::efa_sim

using namespace weft::efa_sim;

EFA_SIM_EXPORT int ibv_fork_init() {
  if (!forks_harm()) return 0;
  // What was registered before is not protected.
  if (!safe && too_late) return EINVAL;
  safe = true;
  return 0;
}

EFA_SIM_EXPORT ibv_fork_status ibv_is_fork_initialized() {
  if (!forks_harm()) return IBV_FORK_UNNEEDED;
  return safe ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}
