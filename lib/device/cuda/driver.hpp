// The CUDA driver's library, found at run time.
#pragma once

#include <type_traits>
#include <weft/error.hpp>

#include "device/cuda/api.hpp"

namespace weft::core::cuda {

/// Its entry points; constant once it is loaded, and never unloaded: a thread of the driver's may
/// run its code for as long as the process lives.
struct Driver {
#define WEFT_MEMBER(name, symbol, ...) std::add_pointer_t<__VA_ARGS__> name = nullptr;
  WEFT_CUDA_ENTRY_POINTS(WEFT_MEMBER)
  WEFT_CUDA_LATER_ENTRY_POINTS(WEFT_MEMBER)  // null where the driver is older
#undef WEFT_MEMBER

  /// Whether this process has its library, started or not.
  static bool loaded() noexcept;
  /// The driver that this process has loaded already; null if there is none, and then no pointer
  /// in it leads to a GPU's memory.
  static const Driver* present();
  /// Loads it if it is not loaded yet: `unavailable` says what is missing.
  static Result<const Driver*> load();

  /// "cuMemcpyAsync failed: invalid argument (CUDA_ERROR_INVALID_VALUE)"
  Error error(const char* symbol, Status status) const;
};

}  // namespace weft::core::cuda
