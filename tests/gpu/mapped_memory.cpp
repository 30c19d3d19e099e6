#include "mapped_memory.hpp"

#include <dlfcn.h>

#include <algorithm>

namespace weft::test {
namespace {

using cuda_sim::Address;
using cuda_sim::Status;

// Numbers and layouts are those of cuda.h (CUDA 10.2 to 13).
using Handle = unsigned long long;  // CUmemGenericAllocationHandle
struct Location {                   // CUmemLocation
  int type = 1;                     // CU_MEM_LOCATION_TYPE_DEVICE
  int device = 0;
};
struct Properties {  // CUmemAllocationProp
  int type = 1;      // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;
  Location location;
  void* win32 = nullptr;
  unsigned char flags[8] = {};
};
struct Access {  // CUmemAccessDesc
  Location location;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};

struct Calls {
  Status (*granularity)(std::size_t*, const Properties*, int);
  Status (*reserve)(Address*, std::size_t, std::size_t, Address, unsigned long long);
  Status (*unreserve)(Address, std::size_t);
  Status (*create)(Handle*, std::size_t, const Properties*, unsigned long long);
  Status (*release)(Handle);
  Status (*map)(Address, std::size_t, std::size_t, Handle, unsigned long long);
  Status (*unmap)(Address, std::size_t);
  Status (*set_access)(Address, std::size_t, const Access*, std::size_t);
};

template <typename Function>
bool look_up(void* driver, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(driver, symbol));
  return function != nullptr;
}

/// Null where the driver lacks one of them.
const Calls* calls() {
  static Calls found{};
  static const bool all = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver != nullptr &&
           look_up(driver, "cuMemGetAllocationGranularity", found.granularity) &&
           look_up(driver, "cuMemAddressReserve", found.reserve) &&
           look_up(driver, "cuMemAddressFree", found.unreserve) &&
           look_up(driver, "cuMemCreate", found.create) &&
           look_up(driver, "cuMemRelease", found.release) &&
           look_up(driver, "cuMemMap", found.map) && look_up(driver, "cuMemUnmap", found.unmap) &&
           look_up(driver, "cuMemSetAccess", found.set_access);
  }();
  return all ? &found : nullptr;
}

}  // namespace

bool MappedMemory::offered() {
  return calls() != nullptr;
}

MappedMemory::MappedMemory(std::size_t bytes) : DeviceBytes(bytes) {
  const Calls& driver = *calls();
  const Properties properties;
  cuda_sim::check(driver.granularity(&part_bytes_, &properties, 0));
  parts_.resize(std::max<std::size_t>(2, (bytes + part_bytes_ - 1) / part_bytes_));
  cuda_sim::check(driver.reserve(&address_, reserved(), 0, 0, 0));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    cuda_sim::check(driver.create(&parts_[i], part_bytes_, &properties, 0));
    cuda_sim::check(driver.map(address_ + i * part_bytes_, part_bytes_, 0, parts_[i], 0));
  }
  const Access access;
  cuda_sim::check(driver.set_access(address_, mapped(), &access, 1));
}

MappedMemory::~MappedMemory() {
  const Calls& driver = *calls();
  driver.unmap(address_, mapped());
  for (const Handle part : parts_) driver.release(part);
  driver.unreserve(address_, reserved());
}

}  // namespace weft::test
