/// @file
/// What RDMA NICs themselves have counted, as the kernel tells it: a witness beside Report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/export.hpp>

namespace weft {

/// Bytes that went over a NIC since its driver was started, for all processes together. What its
/// driver does not tell, or the kernel not now, is empty: EFA tells all of them; InfiniBand and
/// RoCE, as a rule, `sent` and `received` alone.
struct NicCounters {
  using Count = std::optional<std::uint64_t>;

  std::string nic;                 ///< As Capability::domain: "rdmap79s0".
  std::vector<std::string> rails;  ///< This engine's over it.
  Count sent, received;            ///< Of whatever kind.
  /// By RDMA: what it wrote and read at its peers, and they at it.
  Count written, written_by_peers, read, read_by_peers;
  Count messages_sent, messages_received;  ///< Of send and receive.

  /// What left by RDMA, or came. Bytes of a write or a read that a provider builds out of messages
  /// are not in it.
  WEFT_API Count left_by_rdma() const;
  WEFT_API Count came_by_rdma() const;
};

/// By how much they have grown between two readings of one NIC. Empty where one of them is, or
/// where the later one is less: its driver was started anew, or a counter of few bits began again.
WEFT_API NicCounters growth(const NicCounters& before, const NicCounters& after);

}  // namespace weft
