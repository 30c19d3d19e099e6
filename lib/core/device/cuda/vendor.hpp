// NVIDIA's GPUs.
#pragma once

#include "device/vendor.hpp"

namespace weft::core::cuda {

const Vendor& vendor() noexcept;

/// vendor().hold_stream()
Result<std::unique_ptr<StreamGate>> hold_stream(void* stream);

}  // namespace weft::core::cuda
