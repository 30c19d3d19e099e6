// Several reads or writes with one ring of the NIC's doorbell (FI_MORE).
#pragma once

#include <cstddef>
#include <span>

#include "providers/endpoint.hpp"

namespace weft::providers {

/// Posts them in their order, up to the first that is refused, by `post(each, leave_doorbell)`.
///
/// The doorbell is left only to a post that is certain to be taken: it follows at once, to a peer
/// whose address is known, and the send queue has room for all of them (`room`: how many it takes
/// now). A refusal must not come behind one that was left: libfabric wants it to start what came
/// before (fi_rma(3), FI_MORE), but efa-direct over libefa takes all of that back, though it has
/// called it posted (libfabric 2.6, prov/efa/src/efa_data_path_ops.h: efa_ibv_post_write;
/// rdma-core, providers/efa/verbs.c: efa_send_wr_complete).
template <typename Call>
BatchPost post_with_one_ring(std::span<const RmaPost> posts, std::size_t room, Call&& post) {
  return post_in_order(posts, [&](const RmaPost& each) {
    const RmaPost* const next = &each == &posts.back() ? nullptr : &each + 1;
    const bool certain = next != nullptr && posts.size() <= room && next->piece.target.known();
    return post(each, certain);
  });
}

}  // namespace weft::providers
