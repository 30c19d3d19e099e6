#include "providers/environment.hpp"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <system_error>

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

void set_unless_set(const char* name, const char* value) {
  constexpr int keep = 0;
  setenv(name, value, keep);
}

}  // namespace

void settle_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    // With its cache of registrations, verbs gives every key all rights and leaves it valid after
    // fi_mr_close (1.17 and 2.x, prov/verbs/src/verbs_mr.c: vrb_mr_cache_add_region).
    set_unless_set("FI_MR_CACHE_MONITOR", "disabled");
    // Without shared receive contexts ofi_rxm posts receives to a connection that it has just
    // closed, and so a peer that goes away can crash this process (until after 2.6,
    // prov/rxm/src/rxm_conn.c: rxm_close_conn). Of the buffers, 16 KiB each, one endpoint then has
    // as many as the size says (4096 by default); a sender that finds none waits.
    set_unless_set("FI_OFI_RXM_USE_SRX", "1");
    set_unless_set("FI_OFI_RXM_MSG_RX_SIZE", "1024");
    // No messages in segments: a connection that closes in the middle of one takes this process
    // with it (2.1, prov/rxm/src/rxm_conn.c: rxm_close_conn takes a list's link for an entry).
    set_unless_set("FI_OFI_RXM_SAR_LIMIT", "0");
#ifndef WEFT_HAVE_FI_OPT_SHARED_MEMORY_PERMITTED
    // Peers on this machine go by shm; the efa provider's own shared memory would be a second,
    // hidden way. Newer libraries have an option for it (efa.cpp).
    set_unless_set("FI_EFA_ENABLE_SHM_TRANSFER", "0");
#endif
    // ofi_rxm opens completion queues for 128 entries times this and more (1.17,
    // prov/rxm/src/rxm_ep.c: rxm_ep_msg_cq_open), and no attribute of the interface changes that.
    // Hardware has room for the default of 1024; rxe takes 32767 entries.
    if (has_software_nic()) set_unless_set("FI_UNIVERSE_SIZE", "127");
  });
}

}  // namespace weft::providers
