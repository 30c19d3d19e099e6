// What Weft knows about one of libfabric's providers: what to ask libfabric for, and what libfabric
// does not tell.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fabric.hpp"
#include "provider.hpp"

namespace weft::providers {

struct Spec {
  /// Weft's name for it, e.g. "tcp".
  std::string_view name;
  /// libfabric's names for providers that serve, best first. The first one that this library has
  /// is used.
  std::span<const std::string_view> fabric_names;
  /// Whether its NICs are those of an IP interface, chosen by a local address.
  bool by_ip_address;
  /// Whether one lock must guard registering, inserting, posting and polling, because the provider
  /// does not do so itself.
  bool serialise;
  /// Fills in the hints that differ from the common ones.
  void (*hints)(fi_info& hints);
  /// Folds what was measured of the provider into the record made from its fi_info.
  void (*quirks)(const fi_info& info, Capability& record);
  /// Run before its NICs are looked for; null where there is nothing to do.
  void (*prepare)();
  /// Whether endpoints of one process look into each other (SharedEndpoint).
  bool shared_in_process;
  /// An endpoint's source address; null where the provider's own choice does.
  std::string (*source_name)();
  /// Whether every NIC with an IP address is taken, not one for the whole provider.
  bool every_nic = false;
  /// Why libfabric offers nothing, as far as the machine shows it; null: what libfabric says.
  std::string (*absence)() = nullptr;
};

/// Adds the NICs that libfabric finds for a provider to `found`. Fails if none of them serves.
Result<void> look_at(const Spec& spec, const Wanted& wanted, Found& found);

extern const Spec tcp;
extern const Spec fi_shm;
extern const Spec verbs;

}  // namespace weft::providers
