// One of libfabric's providers as Weft knows it: the hints for libfabric, and facts that libfabric
// does not tell.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "providers/libfabric/fabric.hpp"
#include "providers/libfabric/system_probe.hpp"
#include "providers/provider.hpp"

namespace weft::providers {

/// One of libfabric's names for a provider. An older or newer libfabric may have something else.
struct Way {
  std::string_view provider;
  std::string_view fabric = {};  // where a provider has several; empty: whichever
  bool tagged = true;            // it has tagged messages
  bool stays_readable = false;   // its wait descriptor, from the first completion on (Edges)

  /// libfabric's name for it, which is also how users name it.
  constexpr std::string_view name() const { return fabric.empty() ? provider : fabric; }
};

struct Spec {
  /// Weft's name for it, e.g. "tcp".
  std::string_view name;
  /// Best first. NICs are reached by the best one that this libfabric has.
  std::span<const Way> ways;
  /// Whether each NIC may have its own best way; else one way serves for all or for none.
  bool ways_by_nic = false;
  /// Whether its NICs are interfaces of which the one with the address that was asked for serves.
  bool chosen_by_ip = false;
  /// Whether its NICs can be reached by IP addresses only.
  bool needs_ip = false;
  /// Kinds of IP addresses, FI_SOCKADDR_IN and the like, best first: a NIC is reached by the first
  /// that it has. Empty: as the hints say.
  std::span<const std::uint32_t> address_formats = {};
  /// Whether one lock must guard registering, inserting, posting and polling, because the provider
  /// does not do so itself.
  bool serialise = false;
  /// Whether its NICs can reach the memory of devices, so that libfabric is asked for such.
  bool device_memory = false;
  /// Fills in the hints that differ from the common ones.
  void (*hints)(fi_info& hints);
  /// Folds what was measured of the provider into the record made from its fi_info.
  void (*quirks)(const fi_info& info, Capability& record);
  /// The reason to take its NICs, as a sentence.
  std::string_view score;
  /// Whether it is hardware or an interface; else it is memory.
  bool is_nic = true;
  /// Run before its NICs are looked for; null where there is nothing to do.
  void (*prepare)() = nullptr;
  /// Whether endpoints of one process look into each other (SharedEndpoint).
  bool shared_in_process = false;
  /// Why a peer with that address can't be reached; null where every one can.
  Result<void> (*check_peer)(std::string_view address) = nullptr;
  /// An endpoint's source address; null where the provider's own choice does.
  std::string (*source_name)() = nullptr;
  /// Whether it tells of some failures by an event queue, and aborts where there is none.
  bool event_queue = false;
  /// Whether it may report the end of one operation more than once (OperationNames).
  bool repeats_ends = false;
  /// Sets options of an endpoint that is not enabled yet, and checks that they took.
  Result<void> (*configure)(fid_ep& endpoint) = nullptr;
  /// Asks an endpoint that is enabled for what only it knows.
  void (*examine)(fid_ep& endpoint, Capability& record) = nullptr;
  /// Why libfabric has none; null where its own words do.
  std::string (*why_none)(const SystemProbe& around) = nullptr;
  /// A setting that may make them slower than they could be, as a sentence, or empty; null: none
  /// is known.
  std::string (*held_back)(const std::string& root) = nullptr;
  /// Adds advice to the provider's error number; empty: there is none.
  std::string_view (*advice)(int provider_code) = nullptr;
  /// Whether the error is of the way to the peer, so that another NIC may do better.
  bool (*path_failed)(int provider_code) = nullptr;
};

/// Adds the NICs that libfabric finds for a provider in some of its ways, best first, and a note on
/// the ways that were not looked at. `device_memory`: NICs that reach it are wanted, where there
/// are any.
void look_at(const Spec& spec, std::span<const unsigned> ways, bool device_memory,
             std::vector<Seen>& seen);

extern const Spec efa;
extern const Spec fi_shm;
extern const Spec tcp;
extern const Spec verbs;

/// EFA's records where the provider builds operations out of messages.
void emulate_writes(Capability& record);
void emulate_reads(Capability& record);

}  // namespace weft::providers
