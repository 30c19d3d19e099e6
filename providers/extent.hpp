// Memory as it is registered, whosever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/descriptor.hpp"

namespace weft::providers {

/// The driver that libfabric asks about memory: one for one its FI_HMEM_* (none:
/// FI_HMEM_SYSTEM). Weft makes segments of the first two only.
enum class Hmem : std::uint8_t { none, cuda, rocr, neuron };

/// Device memory as the kernel hands it to other drivers: a DMA buffer, which begins at `base`.
/// While its descriptor is open the memory stays where it is.
struct DmaBuf {
  core::Descriptor descriptor;
  std::byte* base = nullptr;
};

/// Where memory lies in the file that it is mapped from, shared with other processes that map it.
struct FilePlace {
  int descriptor = -1;       // open while the memory is registered; -1: there is no file
  std::uint64_t offset = 0;  // of the first byte

  FilePlace behind(std::size_t bytes) const noexcept { return {descriptor, offset + bytes}; }
};

/// While it lives, a device's context is current in the thread that made it.
class CurrentDevice {
 public:
  virtual ~CurrentDevice() = default;
};
class DeviceContext {
 public:
  /// Null where the memory needs none. From any thread.
  virtual std::unique_ptr<CurrentDevice> make_current() const = 0;

 protected:
  ~DeviceContext() = default;
};

struct Extent {
  void* address = nullptr;
  std::size_t length = 0;  // in bytes
  Hmem hmem = Hmem::none;
  int ordinal = 0;                            // of the device, as its driver counts
  std::shared_ptr<const DmaBuf> dmabuf = {};  // null: by pointer
  FilePlace file = {};
  // Of the memory's device, which outlives what is registered. Providers ask the device's driver
  // about the memory, in the thread that registers it. Null: there is none.
  const DeviceContext* context = nullptr;

  std::byte* data() const noexcept { return static_cast<std::byte*>(address); }
  /// Of the first byte in the DMA buffer.
  std::uint64_t dmabuf_offset() const noexcept {
    return static_cast<std::uint64_t>(data() - dmabuf->base);
  }
  Extent part(std::size_t offset, std::size_t bytes) const {
    return {data() + offset, bytes, hmem, ordinal, dmabuf, file.behind(offset), context};
  }
  Extent by_pointer() const { return {address, length, hmem, ordinal, nullptr, file, context}; }
  std::unique_ptr<CurrentDevice> make_current() const {
    return context != nullptr ? context->make_current() : nullptr;
  }
};

}  // namespace weft::providers
