// What carries the bytes of a side.
#pragma once

#include <string>
#include <vector>
#include <weft/engine.hpp>

#include "raw_config.hpp"

namespace weft::perf {

struct Carrier {
  std::string provider;      ///< libfabric's name: "net", "efa"; "shm" is Weft's own too.
  std::vector<RawNic> nics;  ///< Each once, in the order of the rails; none where memory is all.
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Carrier, provider, nics)

/// Of the provider that has the first of those rails; nothing without rails.
Carrier carrier_of(const Info& info, const std::vector<std::string>& rails);

/// The NICs of all rails of a provider, by libfabric's name.
std::vector<RawNic> nics_of(const Info& info, const std::string& provider);

}  // namespace weft::perf
