/// @file
/// The byte counters of RDMA NICs, from the kernel: a witness independent of Report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <weft/export.hpp>

namespace weft {

/// Bytes that went over a NIC since its driver was started, for all processes together. A counter
/// that the driver does not have, or that can't be read, is empty. EFA has all of them; InfiniBand
/// and RoCE usually have `sent` and `received` only.
struct NicCounters {
  using Count = std::optional<std::uint64_t>;

  std::string nic;                 ///< As Capability::domain: "rdmap79s0".
  std::vector<std::string> rails;  ///< Rails of this engine on the NIC.
  Count sent, received;            ///< Bytes of every kind.
  /// Bytes by RDMA: writes and reads by this NIC, and by its peers.
  Count written, written_by_peers, read, read_by_peers;
  Count messages_sent, messages_received;  ///< Bytes of sends and receives.

  /// Bytes that left or came by RDMA. Writes and reads that a provider emulates with messages don't
  /// count.
  WEFT_API Count left_by_rdma() const;
  WEFT_API Count came_by_rdma() const;
};

/// The difference of two readings of one NIC. A counter is empty if it is empty in one of them, or
/// if it became less: the driver was started again, or the counter wrapped.
WEFT_API NicCounters growth(const NicCounters& before, const NicCounters& after);

}  // namespace weft
