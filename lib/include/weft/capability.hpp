/// @file
/// What a rail can do, frozen when it is opened. The core decides by this record and never by the
/// provider's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weft/export.hpp>

namespace weft {

/// What a write's completion at the initiator proves about the target.
enum class CompletionProof : std::uint8_t {
  visible,   ///< The bytes can be read there.
  received,  ///< They arrived; seeing them needs an event at the target, behind them.
};

/// The smallest thing whose access a target can cut off without asking the initiator, so that
/// nothing which the initiator has posted reaches the memory afterwards.
enum class FenceScope : std::uint8_t { grant, segment, rail };

/// Who makes operations advance while no call is made.
enum class ProgressMode : std::uint8_t { automatic, manual };

/// Whether the provider moves the bytes itself or builds the operation out of messages.
enum class Origin : std::uint8_t { native, emulated };

/// What moves bytes from one place to the next.
enum class Mover : std::uint8_t {
  nic,          ///< A NIC, by DMA.
  copy_engine,  ///< Of a GPU.
  cpu,          ///< A process itself, Weft or a provider in it.
  kernel,       ///< Into and out of sockets, or from process to process; on a CPU too.
};

WEFT_API std::string_view to_string(Mover mover) noexcept;

/// How a provider carries the bytes of one kind of operation: whether it copies them from memory to
/// memory on the way, or lets a NIC read and write the memory itself. Bytes that are copied on both
/// sides stop between the two in `between`; those that are copied on one, if it is a NIC that
/// brings or takes them.
struct Carriage {
  /// What is between two copies, or between a copy and a NIC.
  enum class Between : std::uint8_t { provider_buffer, socket_buffer };

  bool initiator_copies = false;  ///< On the side that began it; of a message, the sender.
  bool target_copies = false;     ///< On the other side.
  Mover by = Mover::nic;          ///< Who makes the copies.
  Between between = Between::provider_buffer;
  /// Operations of fewer bytes than this take one copy more, by the CPU, through a buffer of the
  /// provider's on the sides named below.
  std::uint64_t bounced_below = 0;
  bool initiator_bounces = false, target_bounces = false;

  unsigned copies() const noexcept {
    return static_cast<unsigned>(initiator_copies) + static_cast<unsigned>(target_copies);
  }
};

/// What measured best for rails of a provider. Numbers alone: which of them counts, on how many
/// cores and beside what, the core decides in one place (lib/transfer/placement.hpp).
struct Tuning {
  std::uint64_t chunk = 0;        ///< Most bytes in one read or write.
  std::uint64_t chunk_alone = 0;  ///< The same where the NIC has no other rail; 0: no other.
  std::size_t window = 0;         ///< Chunks in flight per rail and peer.
  unsigned rails = 1;             ///< Most rails for each NIC that are worth a thread and a core.
  unsigned rails_sharing = 1;     ///< Rails that carry more than one even if they share cores.
  std::uint64_t share = 0;        ///< Bytes queued on one rail from which another one helps.

  /// Where the ends of two rails have less than a core each.
  struct FewCores {
    std::size_t window_on_host = 0;  ///< To peers of this machine, of several rails; 0: `window`.
    bool one_core = false;  ///< A rail's thread keeps to one core, with the other end if it can.
    bool one_for_mapped = false;  ///< Mapped memory (Capability::maps_memory) keeps to one rail.
    std::uint64_t share = 0;      ///< 0: as above.
    std::uint64_t part = 0;  ///< Bytes worth a rail of their own where no other transfer is queued;
                             ///< 0: a chunk.
  } few_cores;
};

struct Capability {
  /// libfabric's name, e.g. "net"; "shm" for Weft's own. For people, never for decisions.
  std::string provider;
  std::string libfabric_version;     ///< Of the library in use, e.g. "1.17"; empty for Weft's own.
  std::string domain;                ///< NIC or interface, e.g. "rdmap79s0", "lo".
  std::string pci;                   ///< Of the NIC, "0000:4f:00.0"; empty: unknown, or none.
  std::uint32_t address_format = 0;  ///< FI_ADDR_* (rdma/fabric.h).
  std::uint32_t protocol = 0;        ///< Rails with equal protocol and format can talk: FI_PROTO_*,
                                     ///< or a number of Weft's where that is not enough.
  bool same_host_only = false;       ///< Reaches processes of this machine only.

  bool application_keys = false;    ///< Keys are chosen by the engine (and then unguessable).
  bool virtual_addresses = false;   ///< Targets are addressed by pointer, else by offset.
  bool local_registration = false;  ///< Local buffers need registering too (FI_MR_LOCAL).
  bool keys_enforced = false;       ///< The target refuses a wrong key, range or right by itself.
  FenceScope fence = FenceScope::segment;

  std::uint64_t max_message = 0;  ///< Most bytes in one read or write.
  std::uint64_t max_send = 0;     ///< Most bytes in one message.
  std::size_t window = 0;         ///< Most operations that the provider takes at a time.
  std::size_t iov_limit = 1;
  /// Most pieces, apart on either side, that one read or write takes, where that is worth it: what
  /// an operation costs is shared by them.
  std::size_t rma_pieces = 1;
  /// Reads and writes that are posted together are started by one ring of the NIC's doorbell: the
  /// provider heeds FI_MORE, and is known to lose nothing of what waits for the ring.
  bool shared_doorbell = false;
  std::size_t inject = 0;           ///< Bytes that can be sent without keeping the buffer.
  std::size_t completion_data = 0;  ///< Usable bytes of remote completion data.
  Origin write = Origin::native;
  Origin read = Origin::native;
  CompletionProof proof = CompletionProof::visible;
  bool ordered_messages = true;  ///< Messages between two endpoints arrive in order.
  bool path_failures = false;    ///< A failure of the way to a peer is told from a refusal, so that
                                 ///< another one may be taken.
  bool wait_descriptor = false;  ///< A thread can sleep until something happens.
  ProgressMode progress = ProgressMode::manual;
  bool device_memory = false;  ///< Can register GPU memory (FI_HMEM).
  /// Why it can't, as a part of a sentence; empty where it can.
  std::string device_memory_problem;
  bool dmabuf = false;   ///< Such memory is registered by the kernel's DMA buffers, where it can.
  bool cancels = false;  ///< fi_cancel has an effect on RMA.
  double gbps = 0;       ///< Link speed in Gb/s; 0 where unknown.

  /// Memory that lies behind a memfd is mapped by the peers on the host, which then copy to and
  /// from it by themselves, and not as the carriages below say (see Memory::shared).
  bool maps_memory = false;
  /// What it does with the bytes of each kind of operation.
  Carriage write_carriage, read_carriage, message_carriage;

  /// Whether one endpoint makes full use of it: a NIC, where the cores are not what limits it.
  bool fills_alone = false;
  Tuning tuning;
};

/// One NIC or interface that discovery looked at.
struct Candidate {
  std::string provider;
  std::string domain;
  std::string fabric;
  std::string pci;     ///< Of the NIC, "0000:4f:00.0"; empty where libfabric does not tell.
  double gbps = 0;     ///< Of the NIC's link, Gb/s; 0 where libfabric does not tell.
  bool is_nic = true;  ///< Else it is memory.
  bool taken = false;
  std::string reason;  ///< Why it was taken or passed over, as a sentence.
};

}  // namespace weft
