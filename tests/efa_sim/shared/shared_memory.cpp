#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weft::efa_sim {
namespace {

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

SharedMemory SharedMemory::create(std::size_t bytes) {
  Descriptor file(memfd_create("weft-efa", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail(errno, "memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) fail(errno, "ftruncate");
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) fail(errno, "seals");
  return map(std::move(file), bytes);
}

SharedMemory SharedMemory::map(Descriptor file, std::size_t bytes) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) fail(errno, "fstat");
  if (static_cast<std::size_t>(status.st_size) != bytes) fail(EINVAL, "size of shared memory");
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) fail(errno, "mmap");
  SharedMemory memory;
  memory.file_ = std::move(file);
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = bytes;
  return memory;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace weft::efa_sim
