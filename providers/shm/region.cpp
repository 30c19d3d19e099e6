#include "providers/shm/region.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::providers::shm {

template <typename Part>
void Mapped<Part>::Unmap::operator()(Part* part) const noexcept {
  munmap(part, sizeof(Part));
}

template <typename Part>
Result<Mapped<Part>> Mapped<Part>::of(const Descriptor& region, std::size_t offset) {
  void* address = mmap(nullptr, sizeof(Part), PROT_READ | PROT_WRITE, MAP_SHARED, region.get(),
                       static_cast<off_t>(offset));
  if (address == MAP_FAILED) return fail(system_error("mmap of a shared region"));
  Mapped mapped;
  // A new region is all zeros, which is what each member starts as.
  mapped.part_.reset(static_cast<Part*>(address));
  return mapped;
}

template class Mapped<Head>;
template class Mapped<Slot>;

std::uint64_t own_pid_namespace() noexcept {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

void ring(const Head& head, const Descriptor& bell) noexcept {
  if (head.asleep.load(std::memory_order_seq_cst) == 0) return;
  // Fails only if the pipe is full, and then it is readable already.
  [[maybe_unused]] const ssize_t rung = ::write(bell.get(), "", 1);
}

Result<Descriptor> create_region() {
  Descriptor region = core::open_memory_file("weft-shm", MFD_ALLOW_SEALING);
  if (region.get() < 0) return fail(system_error("memfd_create"));
  if (ftruncate(region.get(), static_cast<off_t>(region_bytes)) != 0)
    return fail(system_error("ftruncate of a shared region"));
  if (fcntl(region.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail(system_error("sealing a shared region"));
  return region;
}

Result<void> check_region(const Descriptor& region) {
  struct stat status {};
  if (fstat(region.get(), &status) != 0) return fail(system_error("fstat of a shared region"));
  if (core::may_shrink(region.get()) || status.st_size != static_cast<off_t>(region_bytes))
    return fail(Code::invalid_argument, "the peer's shared region is none of this version");
  return {};
}

}  // namespace weft::providers::shm
