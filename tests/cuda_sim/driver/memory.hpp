// The regions of memory that the driver knows of.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <random>

#include "driver/arena.hpp"
#include "driver/backing.hpp"

namespace weft::cuda_sim {

enum class Kind {
  device,      // cuMemAlloc: nobody but the driver gets at it
  opened,      // the same, of another process
  managed,     // the CPU gets at it too
  pinned,      // host memory from the driver
  registered,  // host memory of the program's
};

/// A page-aligned piece of host memory.
class HostMemory {
 public:
  HostMemory() = default;
  /// Throws std::bad_alloc.
  explicit HostMemory(std::size_t bytes);
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
};

struct Region {
  Kind kind;
  Address base = 0;
  std::size_t bytes = 0;
  Context context = nullptr;
  Ordinal device = 0;
  Backing backing;        // of device, opened and managed memory
  HostMemory host;        // of pinned memory
  std::uint64_t tag = 0;  // tells it from all others, of all processes
  bool sync_memops = false;
  bool mapped = false;  // it passes for memory that cuMemMap has mapped
  bool freed = false;
  unsigned opened = 0;   // how often, of opened memory
  unsigned running = 0;  // copies that are at it right now

  bool on_device() const { return kind <= Kind::managed; }
  /// Where the driver itself gets at an address of the region.
  std::byte* reach(Address address) const;
  /// Whether what was queued for it may still touch it.
  bool alive() const;
};
using RegionPtr = std::shared_ptr<Region>;

class Memory {
 public:
  void reserve() { arena_.reserve(); }
  /// Each makes a region that is in the table; throws Failure or std::bad_alloc.
  RegionPtr allocate_device(std::size_t bytes);
  RegionPtr allocate_managed(std::size_t bytes);
  RegionPtr allocate_pinned(std::size_t bytes);
  RegionPtr register_host(Address base, std::size_t bytes);
  RegionPtr open(Backing backing, std::size_t bytes, std::uint64_t tag);
  void remove(Region& region);

  /// The region with the address; null if there is none.
  RegionPtr find(Address address) const;
  /// The region with all these bytes; null if it is plain host memory. Throws Failure for what is
  /// neither: freed device memory, more than the region has.
  RegionPtr find(Address address, std::size_t bytes) const;
  const std::map<Address, RegionPtr>& regions() const { return regions_; }

 private:
  RegionPtr add(RegionPtr region);
  bool overlaps(Address address, std::size_t bytes) const;

  Arena arena_;
  std::map<Address, RegionPtr> regions_;
  std::mt19937_64 tags_{std::random_device{}()};
};

}  // namespace weft::cuda_sim
