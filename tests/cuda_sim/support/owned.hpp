// What a CUDA program has, for as long as an object of ours lives. Constructors throw
// std::runtime_error where the driver refuses; destructors never throw.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <weft/place.hpp>

#include "interface/application.hpp"

namespace weft::cuda_sim {

/// Throws std::runtime_error for anything but success.
void check(Status status);

/// A device's primary context, current in the thread that made this (which must end it, too).
class CurrentContext {
 public:
  explicit CurrentContext(Ordinal device = 0);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  Context handle() const { return context_; }

 private:
  const Ordinal device_;
  Context context_ = nullptr;
};

/// Device memory in the context that is current, whoever owns it. Its bytes are read and written by
/// synchronous copies over the default stream, so not while that is held.
class DeviceBytes {
 public:
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  Address address(std::size_t offset = 0) const { return address_ + offset; }
  std::byte* pointer() const { return reinterpret_cast<std::byte*>(address_); }
  std::size_t size() const { return bytes_; }

  /// The bytes of stream `seed` (tests/support/pattern.hpp) from `offset` on, in the whole of it.
  void fill(std::uint64_t seed, std::uint64_t offset = 0) const;
  testing::AssertionResult holds(std::uint64_t seed, std::uint64_t offset = 0) const;
  Blob read(std::size_t offset, std::size_t bytes) const;
  Blob read() const { return read(0, bytes_); }
  void write(Bytes bytes, std::size_t offset = 0) const;

 protected:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {}
  ~DeviceBytes() = default;

  const std::size_t bytes_;
  Address address_ = 0;
};

class DeviceMemory : public DeviceBytes {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
};

/// Memory of a device's in the context that is current, which the CPU gets at too.
class ManagedMemory {
 public:
  explicit ManagedMemory(std::size_t bytes);
  ~ManagedMemory();
  ManagedMemory(const ManagedMemory&) = delete;
  ManagedMemory& operator=(const ManagedMemory&) = delete;

  std::span<std::byte> bytes() const { return {reinterpret_cast<std::byte*>(address_), bytes_}; }

 private:
  const std::size_t bytes_;
  Address address_ = 0;
};

/// Pinned host memory from the driver.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  Address address() const { return reinterpret_cast<Address>(data_); }
  std::span<std::byte> bytes() const { return {data(), bytes_}; }

 private:
  const std::size_t bytes_;
  void* data_ = nullptr;
};

class OwnedStream {
 public:
  explicit OwnedStream(unsigned flags = stream_non_blocking);
  ~OwnedStream();
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator Stream() const { return stream_; }

 private:
  Stream stream_ = nullptr;
};

class OwnedEvent {
 public:
  OwnedEvent();
  ~OwnedEvent();
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  operator Event() const { return event_; }

 private:
  Event event_ = nullptr;
};

}  // namespace weft::cuda_sim
