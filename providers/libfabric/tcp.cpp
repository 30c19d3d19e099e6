// Sockets, everywhere. libfabric 1.17 has native reliable datagrams in "net", 2.x in "tcp"; older
// and stripped builds in "tcp;ofi_rxm".
#include <algorithm>

#include "providers/endpoint.hpp"
#include "providers/libfabric/spec.hpp"

namespace weft::providers {
namespace {

constexpr std::string_view by_rxm = "tcp;ofi_rxm";
// In "net" nothing takes back the signal that a completion has set, so that its descriptor is
// readable for ever (1.17, prov/net/src/xnet_progress.c: xnet_trywait; in "tcp" of 1.18.0 too, but
// not of later ones).
constexpr Way tcp_ways[] = {{.provider = "net", .stays_readable = true}, {"tcp"}, {by_rxm}};

// libfabric has FI_PROTO_RXM for all that ofi_rxm makes, over verbs too, where it has the same kind
// of address.
constexpr std::uint32_t rxm_protocol = 0x74727877;  // "trxw"

// The kernel copies into the socket on one side and out of it on the other (tcp_sendmsg,
// tcp_recvmsg); zero-copy sending is off (prov/net/src/xnet_init.c: xnet_zerocopy_size). Fewer
// bytes than libfabric has staging buffers for are collected in these first, on both sides (there:
// xnet_staging_sbuf_size and xnet_prefetch_rbuf_size; prov/tcp of older ones has the same): always
// where they come to, along with the first of larger ones, and where they leave only while the
// socket is full (tests/witness has seen both).
constexpr Carriage by_sockets = {
    .initiator_copies = true,
    .target_copies = true,
    .by = Mover::kernel,
    .between = Carriage::Between::socket_buffer,
    .bounced_below = 9000,
    .initiator_bounces = true,
    .target_bounces = true,
};

// ofi_rxm sends messages up to this size out of buffers of its own, and larger ones it lets the
// receiver read; reads and writes it hands on (prov/rxm/src/rxm_rma.c).
constexpr std::uint64_t rxm_eager = 16 * 1024 + 1;  // rxm.h: rxm_buffer_size

void tcp_hints(fi_info& hints) {
  hints.addr_format = FI_FORMAT_UNSPEC;
}

/// net has four on either side (prov/net/src/xnet.h: XNET_IOV_LIMIT).
std::size_t pieces_of(const fi_info& info) {
  const std::size_t both = std::min(info.tx_attr->iov_limit, info.tx_attr->rma_iov_limit);
  return std::clamp<std::size_t>(both, 1, most_rma_pieces);
}

void tcp_quirks(const fi_info& info, Capability& record) {
  if (info.fabric_attr->prov_name == by_rxm) record.protocol = rxm_protocol;
  // Keys and ranges are checked by the target's provider; under FI_DELIVERY_COMPLETE, which is
  // always set, a refusal also reaches the initiator (as a cut connection).
  record.keys_enforced = true;
  // A write that it has begun to receive goes on into memory whose key was closed meanwhile.
  record.fence = FenceScope::rail;
  record.proof = CompletionProof::visible;
  // xnet allocates receives as they come, whatever the attribute says (prov/net and prov/tcp,
  // xnet_srx.c: xnet_srx_recv); ofi_rxm does not.
  if (info.fabric_attr->prov_name != by_rxm) record.receive_queue = 0;
  record.write_carriage = record.read_carriage = record.message_carriage = by_sockets;
  if (info.fabric_attr->prov_name == by_rxm) record.message_carriage.bounced_below = rxm_eager;
  record.device_memory_problem = "sockets are filled and emptied by the kernel, out of host memory";
  record.tuning.chunk = std::uint64_t{512} << 10;
  record.tuning.window = 4;
  record.tuning.rails = 4;  // as many as were measured
  record.tuning.rails_sharing = 2;
  record.tuning.share = std::uint64_t{128} << 10;
  // Two streams on less than a core for each of their four ends: both ends of each are on one core,
  // whose own cache must have room for what is under way.
  Tuning::FewCores& few = record.tuning.few_cores;
  few.window_on_host = 1;
  few.one_core = true;
  // Both streams carry a part: 1.2 to 1.5 times as fast at 256 to 512 KiB. Not where the kernel
  // paces streams: it takes a stream that carries half as much in a burst for half as fast.
  if (what_holds_streams_back().empty()) few.part = std::uint64_t{128} << 10;
  if (info.fabric_attr->prov_name != by_rxm) record.rma_pieces = pieces_of(info);
}

}  // namespace

// fi_mr_reg and fi_mr_close race with progress in 1.17 and 1.18, whatever threading is asked for
// (prov/net/src/xnet_domain.c: its lock is of no kind for reliable datagrams): connections break.
const Spec tcp = {
    .name = "tcp",
    .ways = tcp_ways,
    .chosen_by_ip = true,
    .serialise = true,
    .hints = tcp_hints,
    .quirks = tcp_quirks,
    .score = "it carries the address that rails were asked for on",
    .held_back = what_holds_streams_back,
};

}  // namespace weft::providers
