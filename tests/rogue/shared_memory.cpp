#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

namespace weft::test {

SharedMemory::SharedMemory(std::size_t bytes) : fd_(memfd_create("weft-rogue", MFD_CLOEXEC)) {
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    throw std::runtime_error("no shared memory");
  map(bytes);
}

SharedMemory::SharedMemory(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) throw std::runtime_error("no shared memory at " + path);
  map(static_cast<std::size_t>(status.st_size));
}

SharedMemory::~SharedMemory() {
  munmap(bytes_.data(), bytes_.size());
  close(fd_);
}

void SharedMemory::map(std::size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (start == MAP_FAILED) throw std::runtime_error("shared memory can't be mapped");
  bytes_ = {static_cast<std::byte*>(start), bytes};
}

std::string SharedMemory::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_);
}

}  // namespace weft::test
