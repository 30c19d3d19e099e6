// Who may touch memory of a kind: the core itself never follows a pointer of the user's.
#pragma once

#include <cstddef>
#include <weft/memory.hpp>

namespace weft::core {

class Xxh3;

/// Copies between memory of one kind and bounce buffers in host memory, and hashes it where it can.
class Device {
 public:
  virtual ~Device() = default;
  virtual void copy_out(void* host, const void* memory, std::size_t bytes) const = 0;
  virtual void copy_in(void* memory, const void* host, std::size_t bytes) const = 0;
  /// Whether hash() may be called.
  virtual bool hashes() const noexcept = 0;
  /// Adds memory to the hash. May take as long as reading the bytes does.
  virtual void hash(Xxh3& hash, const void* memory, std::size_t bytes) const = 0;
};

/// The owner of memory of that kind; null if this build or machine has none.
const Device* device_for(MemoryKind kind) noexcept;

}  // namespace weft::core
