// Opens an Endpoint on a NIC that discovery found.
#pragma once

#include <memory>

#include "providers/endpoint.hpp"
#include "providers/libfabric/spec.hpp"

namespace weft::providers {

/// `device_memory`: whether `nic` was asked for as one that reaches it.
Result<std::unique_ptr<Endpoint>> open_endpoint(const Spec& spec, const Way& way,
                                                const fi_info& nic, bool device_memory);

}  // namespace weft::providers
