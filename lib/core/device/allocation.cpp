#include "device/allocation.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/descriptor.hpp"
#include "base/system_error.hpp"

namespace weft::core {
namespace {

tl::unexpected<Error> no_memory(std::size_t bytes, std::string_view what, int error) {
  const Code code = error == ENOMEM || error == ENOSPC ? Code::out_of_memory : Code::unavailable;
  return fail(code, fmt::format("can't map {} bytes of {}: {}", bytes, what, error_text(error)));
}

/// Overcommit would let the mapping succeed and kill the process later.
Result<void> within_free_memory(std::size_t bytes) {
  const auto all = sysconf(_SC_PHYS_PAGES);
  const auto page = sysconf(_SC_PAGESIZE);
  if (all < 0 || page < 0) return {};
  const auto total = static_cast<std::size_t>(all) * static_cast<std::size_t>(page);
  if (bytes <= total) return {};
  return fail(Code::out_of_memory,
              fmt::format("{} bytes were asked for and the machine has {}", bytes, total));
}

/// The kernel looks up each page that it copies to or from, and a NIC each that it translates. A
/// wish: the system may not give them, or give none that belong to files.
void ask_for_huge_pages(void* address, std::size_t bytes) {
  if (bytes >= Memory::usual_huge_page) madvise(address, bytes, MADV_HUGEPAGE);
}

/// Of the size that is asked for. The kernel's own choice may be another: it would round the
/// mapping up, and refuse to unmap what Weft believes to be all of it.
Result<void*> map_huge_pages(std::size_t bytes, std::size_t page) {
  const auto size =
      static_cast<int>(static_cast<unsigned>(std::countr_zero(page)) << MAP_HUGE_SHIFT);
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size, -1, 0);
  if (address != MAP_FAILED) return address;
  const int error = errno;
  const std::string pool = fmt::format("/sys/kernel/mm/hugepages/hugepages-{}kB", page / 1024);
  if (error == EINVAL)
    return fail(Code::unsupported, fmt::format("the system has no huge pages of {} bytes: there is "
                                               "no {}",
                                               page, pool));
  return no_memory(bytes, fmt::format("huge pages (reserve some: {}/nr_hugepages)", pool), error);
}

/// What of an address space a mapping of so many bytes has. Of a file of huge pages whole ones: the
/// kernel refuses to unmap less. `fd`: -1 for none.
std::size_t mapped_bytes(std::size_t bytes, int fd) noexcept {
  struct statfs system {};
  if (fd < 0 || fstatfs(fd, &system) != 0 || system.f_type != HUGETLBFS_MAGIC) return bytes;
  const auto page = static_cast<std::size_t>(system.f_bsize);
  return (bytes + page - 1) / page * page;
}

}  // namespace

Result<Allocation> Allocation::make(const Memory& memory) {
  const std::size_t bytes = memory.bytes();
  if (bytes == 0) return fail(Code::invalid_argument, "a segment needs at least one byte");
  if (bytes > std::size_t{1} << 56)
    return fail(Code::out_of_memory, fmt::format("{} bytes are more than any machine has", bytes));

  const bool fresh =
      memory.source() != Memory::Source::map && memory.source() != Memory::Source::adopt;
  if (fresh && memory.is_read_only())
    return fail(Code::invalid_argument, "fresh memory that is read-only would stay zero");
  constexpr int protection = PROT_READ | PROT_WRITE;
  constexpr int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  switch (memory.source()) {
    case Memory::Source::own: {
      if (auto enough = within_free_memory(bytes); !enough) return fail(std::move(enough.error()));
      void* address = mmap(nullptr, bytes, protection, anonymous, -1, 0);
      if (address == MAP_FAILED) return no_memory(bytes, "memory", errno);
      ask_for_huge_pages(address, bytes);
      return Allocation(address, bytes, true, -1);
    }
    case Memory::Source::huge: {
      const std::size_t page = memory.page_bytes();
      if (!std::has_single_bit(page) || page < std::size_t{4096})
        return fail(Code::invalid_argument, fmt::format("no huge page has {} bytes", page));
      const std::size_t rounded = (bytes + page - 1) / page * page;
      return map_huge_pages(rounded, page).map([&](void* address) {
        return Allocation(address, rounded, true, -1);
      });
    }
    case Memory::Source::shared: {
      if (auto enough = within_free_memory(bytes); !enough) return fail(std::move(enough.error()));
      const int fd = open_memory_file("weft-segment", MFD_ALLOW_SEALING).release();
      if (fd < 0) return no_memory(bytes, "shared memory", errno);
      // Peers map it: it must not be cut off under them.
      const bool ready = ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
                         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
      void* address = ready ? mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0) : MAP_FAILED;
      if (address == MAP_FAILED) {
        const int error = errno;
        close(fd);
        return no_memory(bytes, "shared memory", error);
      }
      ask_for_huge_pages(address, bytes);
      return Allocation(address, bytes, true, fd);
    }
    case Memory::Source::map: {
      const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
      if (memory.offset() % page != 0)
        return fail(Code::invalid_argument,
                    fmt::format("offset {} is no multiple of the page, {}", memory.offset(), page));
      struct stat status {};
      if (fstat(memory.fd(), &status) != 0)
        return fail(Code::invalid_argument,
                    fmt::format("descriptor {}: {}", memory.fd(), error_text(errno)));
      // Touching pages behind the end of a file would kill the process.
      const auto length = static_cast<std::uint64_t>(status.st_size);
      if (S_ISREG(status.st_mode) && (memory.offset() > length || bytes > length - memory.offset()))
        return fail(Code::invalid_argument,
                    fmt::format("{} bytes from {} leave the file, which has {}", bytes,
                                memory.offset(), length));
      const int fd = fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0);
      if (fd < 0) return no_memory(bytes, "a file", errno);
      const bool read_only = memory.is_read_only() || is_open_for_reading_only(fd);
      void* address = mmap(nullptr, bytes, read_only ? PROT_READ : protection, MAP_SHARED, fd,
                           static_cast<off_t>(memory.offset()));
      if (address == MAP_FAILED) {
        const int error = errno;
        close(fd);
        return no_memory(bytes, "a file", error);
      }
      return Allocation(address, bytes, true, fd, memory.offset(), read_only);
    }
    case Memory::Source::adopt:
      if (memory.address() == nullptr)
        return fail(Code::invalid_argument, "the memory to adopt is a null pointer");
      if (reinterpret_cast<std::uintptr_t>(memory.address()) >
          std::numeric_limits<std::uintptr_t>::max() - bytes)
        return fail(Code::invalid_argument, "the memory to adopt wraps around the address space");
      return Allocation(memory.address(), bytes, false, -1, 0, memory.is_read_only(),
                        memory.owner());
    case Memory::Source::file:
      return fail(Code::internal, "a file has no pages");
  }
  return fail(Code::internal, "unknown source of memory");
}

Allocation::Allocation(Allocation&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      size_(other.size_),
      owned_(std::exchange(other.owned_, false)),
      fd_(std::exchange(other.fd_, -1)),
      file_offset_(other.file_offset_),
      read_only_(other.read_only_),
      owner_(std::move(other.owner_)) {}

bool Allocation::may_fault() const noexcept {
  return fd_ >= 0 && may_shrink(fd_);
}

Allocation::~Allocation() {
  if (owned_) munmap(address_, mapped_bytes(size_, fd_));
  if (fd_ >= 0) close(fd_);
}

}  // namespace weft::core
