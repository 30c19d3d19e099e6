#include "providers/shm/backing.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>

#include "base/log.hpp"

namespace weft::providers::shm {

const char* to_text(Unmappable why) noexcept {
  switch (why) {
    case Unmappable::no:
      return "";
    case Unmappable::no_file:
      return "the memory lies behind no memfd";
    case Unmappable::no_memfd:
      return "the memory's file is no memfd";
    case Unmappable::may_shrink:
      return "the memory's file may still be made smaller (it lacks F_SEAL_SHRINK)";
    case Unmappable::huge_pages:
      return "the memory's file is of huge pages";
  }
  return "the memory's owner gives a reason that is not known here";
}

Unmappable check_file(int descriptor) noexcept {
  struct statfs system {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || fstatfs(descriptor, &system) != 0) return Unmappable::no_memfd;
  if ((seals & F_SEAL_SHRINK) == 0) return Unmappable::may_shrink;
  return system.f_type == TMPFS_MAGIC ? Unmappable::no : Unmappable::huge_pages;
}

Backing backing_of(const FilePlace& file) {
  if (file.descriptor < 0) return {-1, Unmappable::no_file, 0, 0};
  const Unmappable why_not = check_file(file.descriptor);
  struct stat status {};
  if (why_not == Unmappable::no && fstat(file.descriptor, &status) == 0)
    return {file.descriptor, Unmappable::no, status.st_ino, file.offset};
  static std::atomic<bool> told{false};
  if (!told.exchange(true))
    core::log(LogLevel::warning,
              "shm peers copy to and from memory of Memory::map through the kernel, and do not map "
              "it: {}",
              to_text(why_not));
  return {-1, why_not, 0, 0};
}

}  // namespace weft::providers::shm
