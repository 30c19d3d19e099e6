// What the machine has for an engine: its topology, and the NICs that the providers see.
#pragma once

#include <weft/engine.hpp>

#include "providers/provider.hpp"
#include "rail/locality.hpp"

namespace weft::core {

struct Discovery {
  Locality here;
  providers::Wanted wanted;
  providers::Found found;
};

/// `config`: resolved and checked.
Result<Discovery> discover_for(const Config& config);
/// What opening an engine would find. `call`: as the application gives it.
Result<Discovery> discover_before_opening(const Config& call);

}  // namespace weft::core
