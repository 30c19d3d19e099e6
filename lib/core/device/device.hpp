// The interface to a kind of memory: the core itself never dereferences a user's pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <weft/place.hpp>
#include <weft/transfer.hpp>

#include "providers/extent.hpp"
#include "wire/lent.hpp"

namespace weft::core {

class Xxh3;

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

/// Copies between a device's memory and host memory, beside the thread that asks for them. A GPU
/// makes one after the other. Used by one thread at a time.
class CopyQueue {
 public:
  struct Begun {
    std::size_t copies = 0;        // so many of the first are under way
    std::uint64_t number = 0;      // of these together: one more than the last one's
    std::optional<Error> error{};  // why not the others
  };
  /// Does not wait: what is under way goes on, and its memory has to stay.
  virtual ~CopyQueue() = default;
  /// Begins the copies, and does not wait for them. Devices that have an order of their own put
  /// urgent classes first.
  virtual Begun copy(std::span<const Copy> copies, Priority priority) = 0;
  /// All copies up to that number have ended. An error: the device has failed for good, and whether
  /// what was under way has ended can't be told.
  virtual Result<std::uint64_t> ended() = 0;
  /// Of copies of one number, beyond what ended() tells.
  struct News {
    std::uint64_t number = 0;
    std::optional<Error> error;  // why they failed
    bool over = true;  // false: they have failed, and may still be under way; news follows
  };
  /// What is new since the last call, for devices whose copies end in any order.
  virtual std::vector<News> news() { return {}; }
};

/// Memory of one kind, with the device that it is of.
class Device : public providers::DeviceContext {
 public:
  virtual ~Device() = default;
  virtual MemoryKind kind() const noexcept = 0;
  /// Of the device, "0000:53:00.0"; empty for the CPU's memory.
  virtual const std::string& pci() const noexcept = 0;

  /// Whether copy() may be called.
  virtual bool direct() const noexcept = 0;
  /// Takes as long as it takes.
  virtual void copy(void* to, const void* from, std::size_t bytes) const = 0;
  /// Adds memory to the hash. May take as long as reading the bytes does. An error: the device
  /// failed, and what was added to the hash is worth nothing.
  virtual Result<void> hash(Xxh3& hash, const void* memory, std::size_t bytes) const = 0;

  /// For memory that is not direct(). May block.
  virtual Result<std::unique_ptr<CopyQueue>> open_queue() const = 0;
  /// Lets queues copy to and from this host memory without a copy in between, for as long as it is
  /// kept. May block.
  class Pinned {
   public:
    virtual ~Pinned() = default;
  };
  virtual Result<std::unique_ptr<Pinned>> pin(void* host, std::size_t bytes) const = 0;

  /// Memory of this device's for another process to map, for as long as both are there.
  /// `unsupported` where the driver can't.
  virtual Result<Lent> lend(const void* memory, std::size_t bytes) const = 0;
  /// Maps memory that another process lends, for this device's queues to copy to and from, for as
  /// long as it is kept. May block.
  class Mapped {
   public:
    virtual ~Mapped() = default;
    virtual std::byte* address() const noexcept = 0;
  };
  virtual Result<std::unique_ptr<Mapped>> map(const Lent& lent, std::size_t bytes) const = 0;

  /// Whether the memory is mapped in parts, which the application may unmap or map anew at any time
  /// and which nobody tells of: then what is registered is not what it sees.
  virtual bool may_be_remapped(const void*) const { return false; }

  // For NICs that read and write the memory themselves (GPUDirect).
  /// As which libfabric knows the device; none: its memory needs nothing of what follows.
  virtual providers::Hmem hmem() const noexcept { return providers::Hmem::none; }
  std::unique_ptr<providers::CurrentDevice> make_current() const override { return nullptr; }
  /// Of the device, as its driver counts.
  virtual int ordinal() const noexcept { return 0; }
  /// An error says why no NIC may have the device's memory.
  virtual Result<void> check_gpudirect() const { return {}; }
  /// The pages that hold these bytes. May block. An error where the driver gives none.
  virtual Result<std::shared_ptr<const providers::DmaBuf>> export_dmabuf(void* memory,
                                                                         std::size_t bytes) const;
  /// From here on copies that the driver calls synchronous have ended when they return, whatever
  /// NICs do meanwhile: for all allocations that hold these bytes, for as long as they live.
  virtual Result<void> sync_memops(void*, std::size_t) const { return {}; }
  /// Whether what NICs have written is seen by the device only behind a flush().
  virtual bool needs_flush() const { return false; }
  /// Makes the device see all bytes that have arrived before. Blocks for some microseconds.
  virtual Result<void> flush() const { return {}; }
};

/// The CPU's memory.
const Device& host_device() noexcept;

/// Whether there may be memory in this process that is not the CPU's.
bool has_devices() noexcept;

/// The device that owns these bytes of the process; a GPU only if the process has loaded the GPU's
/// driver already. An error if they are a GPU's in part.
Result<const Device*> device_of(const void* memory, std::size_t bytes);

/// Whether this process has loaded a driver of devices with memory of their own; does not start it.
bool device_driver_loaded() noexcept;

}  // namespace weft::core
