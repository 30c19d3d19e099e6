// Amazon's EFA. "efa-direct" hands operations straight to the device; "efa" builds what the device
// lacks out of messages. Over either, delivery is unordered, and only NICs with RDMA write and read
// move bytes without the target's CPU.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext.h>

#include <algorithm>
#include <cstdlib>

#include "providers/libfabric/spec.hpp"

namespace weft::providers {
namespace {

constexpr std::string_view direct = "efa-direct";
constexpr Way efa_ways[] = {{"efa", direct, false}, {"efa", "efa"}};

// The two fabrics of one NIC do not understand each other, and libfabric calls both FI_PROTO_EFA.
constexpr std::uint32_t direct_protocol = 0x65666164;  // "efad"

// The status in a device's completions, which libfabric passes on as the provider's error number:
// rdma-core, providers/efa/efa_io_defs.h, enum efa_io_comp_status.
enum Status : int {
  local_queue_error = 2,
  remote_abort = 8,
  remote_unknown_queue = 9,
  remote_bad_status = 12,
  remote_unresponsive = 13,
  remote_unknown_peer = 14,
  remote_unreachable = 15,
  // The numbers that "efa" makes of 13 (libfabric 1.22 and newer, prov/efa/src/efa_errno.h): after
  // the two have shaken hands, and before.
  established_unresponsive = 4124,
  unestablished_unresponsive = 4126,
};

// The provider copies received bytes out of its packets. It sends them from where the bytes
// lie, since that is registered (1.17, rxr_pkt_type_base.c: rxr_pkt_init_data_from_op_entry).
constexpr Carriage copied_at_arrival = {.target_copies = true, .by = Mover::cpu};

void efa_hints(fi_info& hints) {
  hints.domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints.addr_format = FI_ADDR_EFA;
}

/// efa-direct heeds FI_MORE in all versions that have it (2.1 and newer, prov/efa/src/efa_rma.c),
/// and has room for as many operations as it says. Not so with FI_EFA_TX_SIZE, which makes its
/// queue shorter than it says, and FI_EFA_TRACK_MR (2.6), which has it refuse a post and leave
/// those before it lying. "efa" heeds it too for some, but may queue them until a handshake is
/// over.
bool shares_doorbell(const fi_info& info) {
  const auto set = [](const char* name) { return std::getenv(name) != nullptr; };
  return info.fabric_attr->name == direct && !set("FI_EFA_TX_SIZE") && !set("FI_EFA_TRACK_MR");
}

void efa_quirks(const fi_info& info, Capability& record) {
  if (info.fabric_attr->name == direct) {
    record.protocol = direct_protocol;
    // The completion queue has room for so many (fabric_endpoint.cpp: open_queue), and loses
    // others.
    record.receive_queue = std::min<std::size_t>(record.receive_queue, 2 * info.tx_attr->size);
  } else {
    // "efa" fills the device's queue with packets of its own, and takes any number (1.17,
    // prov/efa/src/rxr/rxr_msg.c: rxr_msg_alloc_rx_entry).
    record.receive_queue = 0;
  }
  record.shared_doorbell = shares_doorbell(info);
  // The target's NIC checks keys, ranges and rights.
  record.keys_enforced = true;
  record.fence = FenceScope::grant;
  // "EFA limit for single MR that enables remote write is 1M pages" (libfabric's PR 10402).
  record.registration_pages = std::uint64_t{1} << 20;
  // The device takes FI_DELIVERY_COMPLETE and ignores it.
  record.proof = CompletionProof::received;
  // The NICs read and write memory; messages come into receive buffers of "efa", which copies them
  // out (1.17, prov/efa/src/rxr/rxr_pkt_type_base.c: rxr_pkt_copy_data_to_op_entry), and with
  // "efa-direct" into the engine's.
  if (info.fabric_attr->name != direct) record.message_carriage = copied_at_arrival;
  record.fills_alone = true;
  // Not measured on EFA hardware: 16 MiB under way are 1.3 ms of a 100 Gb/s link.
  record.tuning.chunk = std::uint64_t{1} << 20;
  record.tuning.window = 16;
  record.tuning.share = std::uint64_t{256} << 10;
}

/// libfabric's calls of CUDA would come from the rail's thread, and may wait for the application's
/// kernels (fi_provider(7), "CUDA deadlock"). 0, or why it goes on to make them:
/// FI_EOPNOTSUPP if it has to copy the GPUs' memory, FI_ENOPROTOOPT if it does not know how (before
/// 1.18), FI_EINVAL if there is no CUDA anyway.
int forbid_cuda([[maybe_unused]] fid_ep& endpoint) {
#ifdef WEFT_HAVE_FI_OPT_CUDA_API_PERMITTED
  const bool permitted = false;
  return -fi_setopt(&endpoint.fid, FI_OPT_ENDPOINT, FI_OPT_CUDA_API_PERMITTED, &permitted,
                    sizeof permitted);
#else
  return FI_ENOPROTOOPT;
#endif
}

/// No shared memory inside the provider: peers on this machine go by shm (environment.cpp).
Result<void> configure(fid_ep& endpoint) {
  forbid_cuda(endpoint);  // examine() looks whether it took
#ifdef WEFT_HAVE_FI_OPT_SHARED_MEMORY_PERMITTED
  const bool permitted = false;
  const int result = fi_setopt(&endpoint.fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED,
                               &permitted, sizeof permitted);
  // efa-direct has none to turn off, and older versions heed a variable (environment.cpp).
  if (result != 0 && result != -FI_ENOPROTOOPT && result != -FI_EOPNOTSUPP)
    return fail(fabric_error("fi_setopt(FI_OPT_SHARED_MEMORY_PERMITTED)", result));
#endif
  return {};
}

#ifdef WEFT_HAVE_FI_OPT_EFA_EMULATED_WRITE
Origin origin_of(fid_ep& endpoint, int option) {
  bool emulated = true;
  std::size_t length = sizeof emulated;
  const int result = fi_getopt(&endpoint.fid, FI_OPT_ENDPOINT, option, &emulated, &length);
  return result == 0 && !emulated ? Origin::native : Origin::emulated;
}
#endif

#ifdef WEFT_HAVE_FI_OPT_MAX_MSG_SIZE
std::uint64_t size_option(fid_ep& endpoint, int option, std::uint64_t otherwise) {
  std::size_t size = 0, length = sizeof size;
  return fi_getopt(&endpoint.fid, FI_OPT_ENDPOINT, option, &size, &length) == 0 ? size : otherwise;
}
#endif

/// Whatever the provider copies it would copy by the CPU, or by calls of CUDA in the rail's thread.
void judge_device_memory(fid_ep& endpoint, Capability& record) {
  if (!record.device_memory) return;
  if (record.write == Origin::emulated || record.read == Origin::emulated)
    record.device_memory_problem = "without RDMA write and read the provider copies the bytes";
  else if (const int why = forbid_cuda(endpoint); why == FI_EOPNOTSUPP || why == FI_ENOPROTOOPT)
    record.device_memory_problem = "the provider would copy a GPU's memory by calls of CUDA";
  record.device_memory = record.device_memory_problem.empty();
  record.dmabuf = record.dmabuf && record.device_memory;
}

void examine([[maybe_unused]] fid_ep& endpoint, Capability& record) {
  // Unless the library says otherwise: before it had the question (1.18) it had no device write at
  // all, and a device read only where the peer agreed.
  record.write = record.read = Origin::emulated;
#ifdef WEFT_HAVE_FI_OPT_EFA_EMULATED_WRITE
  record.write = origin_of(endpoint, FI_OPT_EFA_EMULATED_WRITE);
  record.read = origin_of(endpoint, FI_OPT_EFA_EMULATED_READ);
#endif
#ifdef WEFT_HAVE_FI_OPT_MAX_MSG_SIZE
  record.max_send = size_option(endpoint, FI_OPT_MAX_MSG_SIZE, record.max_send);
  record.max_message = size_option(endpoint, FI_OPT_MAX_RMA_SIZE, record.max_message);
#endif
  if (record.write == Origin::emulated) emulate_writes(record);
  if (record.read == Origin::emulated) emulate_reads(record);
  // A packet for a key that was closed ends the target's process.
  if (record.write == Origin::emulated || record.read == Origin::emulated)
    record.fence = FenceScope::rail;
  judge_device_memory(endpoint, record);
}

std::string_view advice(int provider_code) {
  switch (provider_code) {
    case remote_unresponsive:
    case remote_unreachable:
    case established_unresponsive:
    case unestablished_unresponsive:
      return "; if this peer was never reached, see to it that the security group allows all "
             "traffic to and from itself, and that both NICs are in one subnet";
    case remote_unknown_queue:
    case remote_unknown_peer:
      return "; the peer's endpoint is gone";
    default:
      return {};
  }
}

bool path_failed(int provider_code) {
  switch (provider_code) {
    case local_queue_error:
    case remote_abort:
    case remote_unknown_queue:
    case remote_bad_status:
    case remote_unresponsive:
    case remote_unknown_peer:
    case remote_unreachable:
    case established_unresponsive:
    case unestablished_unresponsive:
      return true;
    default:
      return false;
  }
}

}  // namespace

void emulate_writes(Capability& record) {
  record.write = Origin::emulated;
  // The target's provider copies out of its receive buffers, and under FI_DELIVERY_COMPLETE tells
  // when it has done so.
  record.proof = CompletionProof::visible;
  record.write_carriage = copied_at_arrival;
}

void emulate_reads(Capability& record) {
  record.read = Origin::emulated;
  record.read_carriage = {.initiator_copies = true, .by = Mover::cpu};
}

const Spec efa = {
    .name = "efa",
    .ways = efa_ways,
    .ways_by_nic = true,
    .device_memory = true,
    .hints = efa_hints,
    .quirks = efa_quirks,
    .score = "its NIC moves the bytes",
    // Without one the provider calls abort() when a peer dies during the handshake.
    .event_queue = true,
    .repeats_ends = true,
    .configure = configure,
    .examine = examine,
    .why_none = why_no_efa,
    .advice = advice,
    .path_failed = path_failed,
};

}  // namespace weft::providers
