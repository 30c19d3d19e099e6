// InfiniBand and RoCE NICs by reliable connections, which libfabric's ofi_rxm makes into reliable
// datagrams: messages up to 16 KiB go through its buffers, reads and writes straight to the NIC.
#include <algorithm>

#include "providers/libfabric/spec.hpp"

namespace weft::providers {
namespace {

constexpr Way verbs_ways[] = {{"verbs;ofi_rxm"}};

// ofi_rxm connects by IP address, through the kernel's RDMA connection manager. By IPv6 where a NIC
// has no other: peers must have one of the same kind.
constexpr std::uint32_t verbs_addresses[] = {FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

void verbs_hints(fi_info& hints) {
  hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  // The rail's thread polls anyway; automatic progress would only add a thread to each endpoint.
  hints.domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints.domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

void verbs_quirks(const fi_info&, Capability& record) {
  // By the NIC, for each registration (environment.cpp).
  record.keys_enforced = true;
  record.fence = FenceScope::grant;
  // The other NIC has acknowledged the bytes. It writes a message that came behind them on the same
  // connection after them.
  record.proof = CompletionProof::received;
  // The NICs read and write the memory itself; but messages up to the size of ofi_rxm's buffers go
  // through these on both sides (prov/rxm/src/rxm_msg.c: rxm_send_eager; rxm.h: rxm_buffer_size).
  record.message_carriage.bounced_below = 16 * 1024 + 1;
  record.message_carriage.initiator_bounces = record.message_carriage.target_bounces = true;
  record.fills_alone = true;
  // Of one connection; ofi_rxm promises more for all together (RXM_MSG_RXTX_SIZE in rxm.h, times
  // the part that the engine gives to one peer).
  record.window = std::min<std::size_t>(record.window, 512);
  // The NIC cuts large operations itself. A guess: no such NIC was at hand to measure.
  record.tuning.chunk = std::uint64_t{1} << 20;
  record.tuning.window = 16;
  record.tuning.share = std::uint64_t{1} << 20;
}

}  // namespace

const Spec verbs = {
    .name = "verbs",
    .ways = verbs_ways,
    .needs_ip = true,
    .address_formats = verbs_addresses,
    .device_memory = true,
    .hints = verbs_hints,
    .quirks = verbs_quirks,
    .score = "its NIC moves the bytes",
    .why_none = why_no_verbs,
};

}  // namespace weft::providers
