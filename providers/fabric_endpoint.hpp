// Opens an Endpoint on a NIC that discovery found.
#pragma once

#include <memory>

#include "endpoint.hpp"
#include "spec.hpp"

namespace weft::providers {

Result<std::unique_ptr<Endpoint>> open_endpoint(const Spec& spec, const Way& way,
                                                const fi_info& nic);

}  // namespace weft::providers
