/// @file
/// The capabilities of a rail, frozen when it is opened. The core decides by this record, never by
/// the provider's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weft/export.hpp>

namespace weft {

/// What the completion of a write at the initiator proves about the target.
enum class CompletionProof : std::uint8_t {
  visible,   ///< The bytes can be read there.
  received,  ///< The bytes arrived at the NIC. An event behind them at the target makes them
             ///< visible.
};

/// The smallest unit of access that a target can cut off by itself, so that no posted operation of
/// the initiator reaches the memory afterwards.
enum class FenceScope : std::uint8_t { grant, segment, rail };

/// Whether an operation is native, or the provider builds it out of messages.
enum class Origin : std::uint8_t { native, emulated };

WEFT_API std::string_view to_string(CompletionProof proof) noexcept;
WEFT_API std::string_view to_string(FenceScope scope) noexcept;
WEFT_API std::string_view to_string(Origin origin) noexcept;

/// What moves bytes from one place to the next.
enum class Mover : std::uint8_t {
  nic,          ///< A NIC, by DMA.
  copy_engine,  ///< Of a GPU.
  cpu,          ///< A process: Weft, or a provider in it.
  kernel,       ///< Into and out of sockets, from process to process, or out of the page cache.
  drive,        ///< A drive, by DMA.
};

WEFT_API std::string_view to_string(Mover mover) noexcept;
WEFT_API std::string_view in_words(Mover mover) noexcept;  ///< "the NIC", in a sentence.

/// The copies that a provider makes for one kind of operation. Without copies, NICs read and write
/// the memory themselves. Bytes that are copied on both sides stop in `between`; so do bytes that
/// are copied on one side, if a NIC carries them.
struct Carriage {
  /// The memory between two copies, or between a copy and a NIC.
  enum class Between : std::uint8_t { provider_buffer, socket_buffer };

  bool initiator_copies = false;  ///< A copy on the initiator's side; of a message, the sender's.
  bool target_copies = false;     ///< A copy on the other side.
  Mover by = Mover::nic;          ///< What makes the copies.
  Between between = Between::provider_buffer;
  /// Operations of fewer bytes take one more copy by the CPU, through a buffer of the provider, on
  /// the sides named below.
  std::uint64_t bounced_below = 0;
  bool initiator_bounces = false, target_bounces = false;

  unsigned copies() const noexcept {
    return static_cast<unsigned>(initiator_copies) + static_cast<unsigned>(target_copies);
  }
};

/// A provider's tuned values, as measured for its rails. Data only: the core decides in one place
/// which of them counts (lib/core/transfer/placement.hpp).
struct Tuning {
  std::uint64_t chunk = 0;     ///< Most bytes in one read or write.
  std::size_t window = 0;      ///< Chunks in flight per rail and peer.
  unsigned rails = 1;          ///< Most rails for each NIC that are worth a thread and a core.
  unsigned rails_sharing = 1;  ///< Rails that carry more than one even if they share cores.
  std::uint64_t share = 0;     ///< Bytes queued on one rail from which another one helps.

  /// Where the ends of two rails have less than a core each.
  struct FewCores {
    std::size_t window_on_host = 0;  ///< To peers of this machine, of several rails; 0: `window`.
    bool one_core = false;  ///< A rail's thread keeps to one core, with the other end if it can.
    bool one_for_mapped = false;  ///< Mapped memory (Capability::maps_memory) keeps to one rail.
    std::uint64_t part = 0;  ///< Bytes worth a rail of their own where no other transfer is queued;
                             ///< 0: a chunk.
  } few_cores;
};

struct Capability {
  /// libfabric's name, e.g. "net"; "shm" for Weft's own. For people, never for decisions.
  std::string provider;
  std::string libfabric_version;     ///< Of the library in use, e.g. "1.17"; empty for Weft's shm.
  std::string domain;                ///< NIC or interface, e.g. "rdmap79s0", "lo".
  std::string pci;                   ///< Of the NIC, "0000:4f:00.0"; empty: unknown, or none.
  std::uint32_t address_format = 0;  ///< FI_ADDR_* (rdma/fabric.h).
  std::uint32_t protocol = 0;        ///< Rails with equal protocol and format can talk: FI_PROTO_*,
                                     ///< or a number of Weft's where that is not enough.
  bool same_host_only = false;       ///< Reaches processes of this machine only.

  bool application_keys = false;    ///< The engine chooses keys, 64 random bits each.
  bool virtual_addresses = false;   ///< Targets are addressed by pointer; else by offset.
  bool local_registration = false;  ///< Local buffers must be registered too (FI_MR_LOCAL).
  /// Registering memory pins it in the NIC's tables (FI_MR_ALLOCATED): it takes time, and grants
  /// share registrations (Keys). False: it costs nothing.
  bool pins_memory = false;
  /// Most pages of one registration that peers may write; 0: the provider names no limit. Larger
  /// memory is registered in several (extents).
  std::uint64_t registration_pages = 0;
  bool keys_enforced = false;  ///< The target refuses wrong keys, ranges and rights by itself.
  FenceScope fence = FenceScope::segment;

  std::uint64_t max_message = 0;  ///< Largest read or write, in bytes.
  std::uint64_t max_send = 0;     ///< Largest message, in bytes.
  std::size_t window = 0;         ///< Most operations that the provider takes at a time.
  /// Most receives that the provider keeps posted at a time (fi_rx_attr::size); 0: no fixed number.
  std::size_t receive_queue = 0;
  /// Most pieces of a transfer that share one read or write, if that is worth it. They may lie
  /// apart on either side.
  std::size_t rma_pieces = 1;
  /// Reads and writes that are posted together share one ring of the NIC's doorbell: the provider
  /// heeds FI_MORE, and loses none of the posts that wait for the ring.
  bool shared_doorbell = false;
  Origin write = Origin::native;
  Origin read = Origin::native;
  CompletionProof proof = CompletionProof::visible;
  bool path_failures = false;  ///< The provider tells failures of the path from refusals, so that
                               ///< another rail may be used.
  bool device_memory = false;  ///< Can register GPU memory (FI_HMEM).
  /// Why it can't, as part of a sentence; empty if it can.
  std::string device_memory_problem;
  bool dmabuf = false;  ///< Registers GPU memory by DMA buffers of the kernel, where possible.
  double gbps = 0;      ///< Link speed in Gb/s; 0: unknown.

  /// Peers on the host map memory behind a memfd and copy to and from it themselves, not as the
  /// carriages below say (see Memory::shared).
  bool maps_memory = false;
  /// The copies for each kind of operation.
  Carriage write_carriage, read_carriage, message_carriage;

  /// Whether one endpoint fills the NIC. False where cores are the limit.
  bool fills_alone = false;
  Tuning tuning;
};

/// A NIC or interface that discovery considered.
struct Candidate {
  std::string provider;
  std::string domain;
  std::string fabric;
  std::string pci;     ///< Of the NIC, "0000:4f:00.0"; empty if libfabric does not report it.
  double gbps = 0;     ///< Link speed in Gb/s; 0 if libfabric does not report it.
  bool is_nic = true;  ///< False for memory.
  bool taken = false;  ///< Used.
  std::string reason;  ///< Why it is used or not: a sentence.
};

}  // namespace weft
