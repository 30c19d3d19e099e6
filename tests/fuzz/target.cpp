#include "target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace weft::fuzz {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "found: %s\n", what);
  std::abort();
}

MemoryFile::MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  require(descriptor_ >= 0, "no file in memory can be made");
}

MemoryFile::~MemoryFile() {
  close(descriptor_);
}

void MemoryFile::write(std::string_view contents) {
  const bool written =
      ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, contents.data(), contents.size(), 0) ==
                                            static_cast<ssize_t>(contents.size());
  require(written, "the file in memory can't be written");
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

}  // namespace weft::fuzz
