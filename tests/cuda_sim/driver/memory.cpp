#include "driver/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <vector>

#include "driver/status.hpp"

namespace weft::cuda_sim {
namespace {

const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Whether all of its pages are mapped.
bool is_mapped(Address address, std::size_t bytes) {
  const Address first = address / page * page;
  const std::size_t span = static_cast<std::size_t>(address + bytes - first);
  std::vector<unsigned char> resident((span + page - 1) / page);
  return mincore(reinterpret_cast<void*>(first), span, resident.data()) == 0;
}

/// Changes what the CPU may do at addresses of the arena.
void expose(Address base, std::size_t bytes, int protection, int file) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const at =
      mmap(reinterpret_cast<void*>(base), bytes, protection, MAP_FIXED | flags, file, 0);
  require(at != MAP_FAILED, out_of_memory);
}

}  // namespace

// From the allocator, so that the address sanitizer sees a copy that runs over its end.
HostMemory::HostMemory(std::size_t bytes) : data_(::operator new(bytes, std::align_val_t(page))) {
  std::memset(data_, 0, bytes);
}

HostMemory::~HostMemory() {
  ::operator delete(data_, std::align_val_t(page));
}

std::byte* Region::reach(Address address) const {
  if (kind == Kind::device || kind == Kind::opened) return backing.data() + (address - base);
  return reinterpret_cast<std::byte*>(address);
}

bool Region::alive() const {
  return !freed && !(kind == Kind::opened && backing.retired());
}

RegionPtr Memory::add(RegionPtr region) {
  if (region->tag == 0) region->tag = tags_();
  regions_[region->base] = region;
  return region;
}

RegionPtr Memory::allocate_device(std::size_t bytes) {
  const std::uint64_t tag = tags_();
  Backing backing = Backing::create(bytes, tag);
  return add(std::make_shared<Region>(Region{.kind = Kind::device,
                                             .base = arena_.take(bytes),
                                             .bytes = bytes,
                                             .backing = std::move(backing),
                                             .tag = tag}));
}

RegionPtr Memory::allocate_managed(std::size_t bytes) {
  RegionPtr region = allocate_device(bytes);
  region->kind = Kind::managed;
  expose(region->base, bytes, PROT_READ | PROT_WRITE, region->backing.descriptor());
  return region;
}

RegionPtr Memory::allocate_pinned(std::size_t bytes) {
  HostMemory host(bytes);
  const auto base = reinterpret_cast<Address>(host.data());
  return add(std::make_shared<Region>(
      Region{.kind = Kind::pinned, .base = base, .bytes = bytes, .host = std::move(host)}));
}

RegionPtr Memory::register_host(Address base, std::size_t bytes) {
  require(bytes > 0 && base + bytes > base && !arena_.touches(base, bytes));
  require(!overlaps(base, bytes), host_memory_already_registered);
  require(is_mapped(base, bytes));
  return add(
      std::make_shared<Region>(Region{.kind = Kind::registered, .base = base, .bytes = bytes}));
}

RegionPtr Memory::open(Backing backing, std::size_t bytes, std::uint64_t tag) {
  return add(std::make_shared<Region>(Region{.kind = Kind::opened,
                                             .base = arena_.take(bytes),
                                             .bytes = bytes,
                                             .backing = std::move(backing),
                                             .tag = tag}));
}

void Memory::remove(Region& region) {
  const RegionPtr kept = regions_.at(region.base);
  region.freed = true;
  regions_.erase(region.base);
  if (!region.on_device()) return;
  if (region.kind == Kind::managed) expose(region.base, region.bytes, PROT_NONE, -1);
  arena_.give_back(region.base);
}

RegionPtr Memory::find(Address address) const {
  auto following = regions_.upper_bound(address);
  if (following == regions_.begin()) return nullptr;
  const RegionPtr& region = std::prev(following)->second;
  return address - region->base < region->bytes ? region : nullptr;
}

RegionPtr Memory::find(Address address, std::size_t bytes) const {
  require(address >= page && address + bytes >= address);
  if (const RegionPtr region = find(address)) {
    require(bytes <= region->bytes - (address - region->base));
    return region;
  }
  require(!arena_.touches(address, bytes) && !overlaps(address, bytes));
  return nullptr;
}

bool Memory::overlaps(Address address, std::size_t bytes) const {
  const auto following = regions_.lower_bound(address);
  return find(address) != nullptr ||
         (following != regions_.end() && following->first < address + bytes);
}

}  // namespace weft::cuda_sim
