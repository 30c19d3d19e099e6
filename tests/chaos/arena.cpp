#include "arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace weft::chaos {
namespace {

[[noreturn]] void give_up(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Arena::Arena(std::uint64_t bytes)
    : bytes_(bytes), fd_(memfd_create("weft-chaos", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) give_up("memfd_create");
  if (fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) give_up("sealing a memfd");
  map();
}

Arena::Arena(const std::string& path, std::uint64_t bytes)
    : bytes_(bytes), fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  if (fd_ < 0) give_up(path.c_str());
  map();
}

void Arena::map() {
  void* address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (address == MAP_FAILED) give_up("mmap");
  data_ = static_cast<std::byte*>(address);
}

Arena::~Arena() {
  munmap(data_, bytes_);
  close(fd_);
}

std::string Arena::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), fd_);
}

}  // namespace weft::chaos
