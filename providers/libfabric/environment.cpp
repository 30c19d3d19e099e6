#include "providers/libfabric/environment.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/sync.hpp"
#include "providers/libfabric/libfabric.hpp"

namespace weft::providers {
namespace {

/// Whether an RDMA device is emulated by the kernel (rxe, siw).
bool has_software_nic() {
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    const auto place = std::filesystem::canonical(device.path(), error);
    if (place.string().starts_with("/sys/devices/virtual/")) return true;
  }
  return false;
}

/// Whether endpoints have an option for that (efa.cpp): from libfabric 1.21 on, if the headers of
/// the build had it too.
bool forbids_shared_memory() {
#ifdef WEFT_HAVE_FI_OPT_SHARED_MEMORY_PERMITTED
  const auto library = load_libfabric();
  return library && FI_VERSION_GE((*library)->version, FI_VERSION(1, 21));
#else
  return false;
#endif
}

using SetBy = ProcessVariable::SetBy;

std::vector<ProcessVariable> settle(SetBy by) {
  std::vector<ProcessVariable> settled;
  const auto set_unless_set = [&](const char* name, const char* value) {
    if (const char* const found = std::getenv(name)) {
      settled.push_back({name, found, SetBy::application});
    } else {
      setenv(name, value, 1);
      settled.push_back({name, value, by});
    }
  };
  // With its cache of registrations, verbs gives every key all rights and leaves it valid after
  // fi_mr_close (1.17 and 2.x, prov/verbs/src/verbs_mr.c: vrb_mr_cache_add_region).
  set_unless_set("FI_MR_CACHE_MONITOR", "disabled");
  // Without shared receive contexts ofi_rxm posts receives to a connection that it has just
  // closed, and so a peer that goes away can crash this process (until after 2.6,
  // prov/rxm/src/rxm_conn.c: rxm_close_conn). Of the buffers, 16 KiB each, one endpoint then has
  // as many as the size says (4096 by default); a sender that finds none waits.
  set_unless_set("FI_OFI_RXM_USE_SRX", "1");
  set_unless_set("FI_OFI_RXM_MSG_RX_SIZE", "1024");
  // Receives that an endpoint keeps posted (2048 by default): each peer needs 8 of one rail
  // (lib/core/message/messenger.hpp), so that these bound how many there can be.
  set_unless_set("FI_OFI_RXM_RX_SIZE", "8192");
  // No messages in segments: a connection that closes in the middle of one takes this process
  // with it (2.1, prov/rxm/src/rxm_conn.c: rxm_close_conn takes a list's link for an entry).
  set_unless_set("FI_OFI_RXM_SAR_LIMIT", "0");
  // Peers on this machine go by shm; the efa provider's own shared memory would be a second,
  // hidden way.
  if (!forbids_shared_memory()) set_unless_set("FI_EFA_ENABLE_SHM_TRANSFER", "0");
  // Before Linux 5.13 a fork moves pinned pages away from the NIC, and efa aborts a process that
  // forks, be it to run a command, unless it was asked to keep them
  // (prov/efa/src/efa_fork_support.c: efa_atfork_callback_warn_and_abort). On newer kernels this
  // does nothing.
  set_unless_set("FI_EFA_FORK_SAFE", "1");
  // ofi_rxm opens completion queues for 128 entries times this and more (1.17,
  // prov/rxm/src/rxm_ep.c: rxm_ep_msg_cq_open), and no attribute of the interface changes that.
  // Hardware has room for the default of 1024; rxe takes 32767 entries.
  if (has_software_nic()) set_unless_set("FI_UNIVERSE_SIZE", "127");
  return settled;
}

struct Settled {
  core::Mutex mutex;
  bool done WEFT_GUARDED_BY(mutex) = false;
  std::vector<ProcessVariable> variables WEFT_GUARDED_BY(mutex);
};

/// Never destroyed: engines may be opened to the end of the process.
Settled& settled() {
  static auto& state = *new Settled;
  return state;
}

}  // namespace

void settle_environment(SetBy by) {
  Settled& state = settled();
  const core::Lock lock(state.mutex);
  if (state.done) return;
  state.variables = settle(by);
  state.done = true;
}

std::vector<ProcessVariable> settled_environment() {
  Settled& state = settled();
  const core::Lock lock(state.mutex);
  return state.variables;
}

}  // namespace weft::providers
