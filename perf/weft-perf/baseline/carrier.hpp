// What carries the bytes of a side.
#pragma once

#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "raw/config.hpp"

namespace weft::perf {

/// Rails of one kind can talk to each other, whatever libfabric calls them on either side.
struct RailKind {
  std::uint32_t protocol = 0, address_format = 0;  ///< As Capability has them.

  bool operator==(const RailKind&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RailKind, protocol, address_format)

struct Carrier {
  std::string provider;  ///< libfabric's name on this side: "net", "efa"; "shm" is Weft's own too.
  RailKind kind;
  std::vector<RawNic> nics;  ///< Each once, in the order of the rails; none where memory is all.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Carrier, provider, kind, nics)

/// Of the kind that the first of those rails has; nothing without rails.
Carrier carrier_of(const Info& info, const std::vector<std::string>& rails);

/// Of all rails of a kind.
Carrier carrier_of(const Info& info, const RailKind& kind);

}  // namespace weft::perf
