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

/// The application may capture a graph in this thread or another one. While this lives, calls of
/// this thread neither break the capture nor fail because of it (CUDA driver API,
/// cuThreadExchangeStreamCaptureMode). Every call needs one, but those that only ask for a device's
/// or an address's attributes.
class OutsideCaptures {
 public:
  explicit OutsideCaptures(const Driver& driver)
      : driver_(driver), status_(driver.exchange_capture_mode(&mode_)) {}
  ~OutsideCaptures() {
    if (status_ == success) driver_.exchange_capture_mode(&mode_);
  }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

 private:
  const Driver& driver_;
  int mode_ = capture_mode_relaxed;  // then the thread's own
  const Status status_;
};

}  // namespace weft::core::cuda
