// A vendor of GPUs: all that devices.cpp asks of a folder like cuda/.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "device/stream_gate.hpp"

namespace weft::core {

/// Handles of streams and events are those of the vendor's driver. From any thread.
class Vendor {
 public:
  virtual ~Vendor() = default;
  /// Whether this process has loaded the driver; does not start it.
  virtual bool loaded() const noexcept = 0;
  /// The same, and starts it. False: no pointer, stream or event in this process is the vendor's.
  virtual bool present() const noexcept = 0;

  // If it is present.
  /// The GPU that owns these bytes; null if none does. An error if they are a GPU's in part.
  virtual Result<const Device*> device_of(const void* memory, std::size_t bytes) const = 0;
  /// As event_happened() and hold_stream() of the device layer.
  virtual Result<bool> event_happened(void* event) const = 0;
  virtual Result<std::unique_ptr<StreamGate>> hold_stream(void* stream) const = 0;
};

}  // namespace weft::core
