// CUresult values that the stand-in gives, beyond those that the library has use for (api.hpp).
#pragma once

#include "device/cuda/api.hpp"

namespace weft::cuda_sim {

using namespace weft::core::cuda;
using weft::core::cuda::Event;  // not weft::Event, whichever header comes first

inline constexpr Status deinitialized = 4;
inline constexpr Status invalid_device = 101;
inline constexpr Status map_failed = 205;
inline constexpr Status ecc_uncorrectable = 214;
inline constexpr Status peer_access_unsupported = 217;
inline constexpr Status operating_system = 304;
inline constexpr Status invalid_handle = 400;
inline constexpr Status illegal_state = 401;
inline constexpr Status not_found = 500;
inline constexpr Status illegal_address = 700;
inline constexpr Status context_is_destroyed = 709;
inline constexpr Status host_memory_not_registered = 713;
inline constexpr Status not_permitted = 800;
inline constexpr Status capture_unsupported = 900;
inline constexpr Status capture_invalidated = 901;
inline constexpr Status captured_event = 907;
inline constexpr Status capture_wrong_thread = 908;
inline constexpr Status unknown_error = 999;

}  // namespace weft::cuda_sim
