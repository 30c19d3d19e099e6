// The part of libefa's interface (rdma-core's infiniband/efadv.h) that libfabric uses, as of its
// newest version: so that one shim serves whatever headers it was built with, and whatever version
// libfabric was built with. The structures grow at their ends, and callers tell their sizes.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#define EFA_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace weft::efa_sim {

struct EfaDeviceAttributes {
  std::uint64_t comp_mask;
  std::uint32_t max_sq_wr;
  std::uint32_t max_rq_wr;
  std::uint16_t max_sq_sge;
  std::uint16_t max_rq_sge;
  std::uint16_t inline_buf_size;
  std::uint16_t inline_buf_size_ex;
  std::uint32_t device_caps;
  std::uint32_t max_rdma_size;
};

// Of device_caps.
constexpr std::uint32_t cap_rdma_read = 1 << 0;
constexpr std::uint32_t cap_rnr_retry = 1 << 1;
constexpr std::uint32_t cap_cq_with_sgid = 1 << 2;
constexpr std::uint32_t cap_rdma_write = 1 << 3;
constexpr std::uint32_t cap_unsolicited_write_recv = 1 << 4;

struct EfaAddressAttributes {
  std::uint64_t comp_mask;
  std::uint16_t ahn;
  std::uint8_t reserved[6];
};

struct EfaQueuePairInit {
  std::uint64_t comp_mask;
  std::uint32_t driver_qp_type;
  std::uint16_t flags;
  std::uint8_t sl;
  std::uint8_t reserved;
  std::uint64_t wr_flags;
};
constexpr std::uint16_t qp_unsolicited_write_recv = 1 << 0;

struct EfaWorkQueueAttributes {
  std::uint64_t comp_mask;
  std::uint8_t* buffer;
  std::uint32_t entry_size;
  std::uint32_t num_entries;
  std::uint32_t* doorbell;
  std::uint32_t max_batch;
  std::uint16_t caps;
  std::uint8_t reserved[2];
};

struct EfaQueuePair {
  std::uint64_t comp_mask;
  void (*wr_set_processing_hints)(EfaQueuePair* queue_pair, std::uint32_t hints);
};

/// What libfabric passes on to efadv_create_cq; none of its options is offered.
struct EfaCompletionQueueInit {
  std::uint64_t comp_mask;
  std::uint64_t wc_flags;
  std::uint64_t flags;
};

struct EfaCompletionQueueAttributes {
  std::uint64_t comp_mask;
  std::uint8_t* buffer;
  std::uint32_t entry_size;
  std::uint32_t num_entries;
  std::uint32_t* doorbell;
};

struct EfaCompletionQueue {
  std::uint64_t comp_mask;
  int (*wc_read_sgid)(EfaCompletionQueue* queue, ibv_gid* sgid);
  bool (*wc_is_unsolicited)(EfaCompletionQueue* queue);
};

/// Fills in as much as the caller's version has.
template <typename Attributes>
int give(const Attributes& attributes, void* into, std::uint32_t size) {
  std::memset(into, 0, size);
  std::memcpy(into, &attributes, std::min<std::size_t>(size, sizeof attributes));
  return 0;
}

/// What the caller's version has, and zeros.
template <typename Attributes>
Attributes take(const void* from, std::uint32_t size) {
  Attributes attributes{};
  std::memcpy(&attributes, from, std::min<std::size_t>(size, sizeof attributes));
  return attributes;
}

}  // namespace weft::efa_sim
