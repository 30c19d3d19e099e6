// Sockets, everywhere. libfabric 1.17 has native reliable datagrams in "net", 2.x in "tcp"; older
// and stripped builds in "tcp;ofi_rxm".
#include "spec.hpp"

namespace weft::providers {
namespace {

constexpr std::string_view by_rxm = "tcp;ofi_rxm";
constexpr Way tcp_ways[] = {{"net"}, {"tcp"}, {by_rxm}};

// libfabric has FI_PROTO_RXM for all that ofi_rxm makes, over verbs too, where it has the same kind
// of address.
constexpr std::uint32_t rxm_protocol = 0x74727877;  // "trxw"

void tcp_hints(fi_info& hints) {
  hints.addr_format = FI_FORMAT_UNSPEC;
}

void tcp_quirks(const fi_info& info, Capability& record) {
  if (info.fabric_attr->prov_name == by_rxm) record.protocol = rxm_protocol;
  // Keys and ranges are checked by the target's provider; under FI_DELIVERY_COMPLETE, which is
  // always set, a refusal also reaches the initiator (as a cut connection).
  record.keys_enforced = true;
  // A write that it has begun to receive goes on into memory whose key was closed meanwhile.
  record.fence = FenceScope::rail;
  record.proof = CompletionProof::visible;
  record.ordered_messages = true;
  // Into the socket on one side and out of it on the other.
  record.copies = 2;
  record.best_chunk = std::uint64_t{512} << 10;
  record.best_window = 4;
  record.best_share = std::uint64_t{128} << 10;
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
    .merit = "it carries the address that rails were asked for on",
};

}  // namespace weft::providers
