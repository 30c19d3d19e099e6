// Folds libfabric's description of a NIC and the provider's quirks into the record.
#pragma once

#include <weft/capability.hpp>

#include "providers/libfabric/spec.hpp"

namespace weft::providers {

Capability make_record(const Spec& spec, const fi_info& info);

}  // namespace weft::providers
