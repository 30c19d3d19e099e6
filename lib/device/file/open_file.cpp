#include "device/file/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "device/file/disk.hpp"
#include "device/file/file_errors.hpp"
#include "device/file/file_lock.hpp"
#include "device/file/file_page.hpp"
#include "device/file/io_channel.hpp"

namespace weft::core {
namespace {

/// Of a descriptor, as people know it.
std::string path_of(int fd) {
  std::string path(4096, '\0');
  const ssize_t length =
      readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path.data(), path.size());
  if (length <= 0) return fmt::format("descriptor {}", fd);
  path.resize(static_cast<std::size_t>(length));
  return path;
}

/// Does not wait for the other end of a pipe, and is none of a terminal's.
Descriptor open_at(const std::string& path, int flags) {
  Descriptor opened(open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  // io_uring would not wait for the drive.
  if (opened.get() >= 0) fcntl(opened.get(), F_SETFL, fcntl(opened.get(), F_GETFL) & ~O_NONBLOCK);
  return opened;
}

}  // namespace

Error OpenFile::held_up() const {
  return Error(Code::timed_out,
               fmt::format("file '{}': nothing was begun for {} ms: others had its blocks, or all "
                           "that the device {} may do at a time (errno {})",
                           path_, options_.timeout / std::chrono::milliseconds(1), disk_->name(),
                           ETIMEDOUT));
}

Error OpenFile::silent() const {
  return Error(
      Code::timed_out,
      fmt::format("file '{}': the device {} has not answered for {} ms (errno {})", path_,
                  disk_->name(), options_.timeout / std::chrono::milliseconds(1), ETIMEDOUT));
}

std::string OpenFile::how() const {
  const std::string checked =
      sums_ ? fmt::format(", its blocks of {} bytes checked", sums_->block()) : "";
  if (direct()) return fmt::format("a file, by direct I/O ({}){}", io_channel_name(), checked);
  return fmt::format("a file, buffered by the kernel{} ({}){}",
                     why_buffered_.empty() ? "" : ": " + why_buffered_, io_channel_name(), checked);
}

Result<void> OpenFile::open_descriptors(const Memory& memory) {
  const bool by_path = !memory.path().empty();
  path_ = by_path ? memory.path() : path_of(memory.fd());
  const std::string name = by_path ? path_ : fmt::format("/proc/self/fd/{}", memory.fd());
  if (!by_path) {
    const int flags = fcntl(memory.fd(), F_GETFL);
    if (flags < 0) return fail(file_error(path_, errno));
    read_only_ = read_only_ || (flags & O_ACCMODE) == O_RDONLY;
  }
  const int access = read_only_ ? O_RDONLY : O_RDWR;
  buffered_ = open_at(name, access | (by_path && options_.create ? O_CREAT : 0));
  const int refused = errno;
  if (buffered_.get() < 0 && !by_path) {
    // Opened anew it may be out of reach, and the descriptor does as well.
    const int flags = fcntl(memory.fd(), F_GETFL);
    if ((flags & (O_APPEND | O_DIRECT | O_NONBLOCK)) != 0)
      return fail(Code::invalid_argument,
                  fmt::format("'{}' can't be opened anew ({}), and its descriptor has O_APPEND, "
                              "O_DIRECT or O_NONBLOCK",
                              path_, std::strerror(refused)));
    buffered_ = Descriptor(fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
    why_buffered_ = fmt::format("it can't be opened anew: {}", std::strerror(refused));
  }
  if (buffered_.get() < 0) return fail(file_error(path_, refused));
  if (!options_.direct)
    why_buffered_ = "that was asked for";
  else if (why_buffered_.empty())
    direct_ = open_at(name, access | O_DIRECT);
  return {};
}

/// Whether whole pages go to the drive and back without the page cache.
void OpenFile::try_direct() {
  if (!why_buffered_.empty()) return;
  if (direct_.get() < 0) {
    why_buffered_ = "the file system takes no direct I/O";
    return;
  }
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (statx(direct_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) {
      why_buffered_ = "the file system takes no direct I/O";
      return;
    }
    if (status.stx_dio_offset_align > file_page || status.stx_dio_mem_align > file_page) {
      why_buffered_ = fmt::format("direct I/O here takes blocks of {} bytes",
                                  std::max(status.stx_dio_offset_align, status.stx_dio_mem_align));
      return;
    }
  }
#endif
  // Some file systems refuse it only when it is tried.
  const auto page = make_file_pages(file_page);
  if (!page || (pread(direct_.get(), page.get(), file_page, 0) < 0 && errno == EINVAL)) {
    why_buffered_ = "the file system takes no direct I/O";
    return;
  }
  direct_ok_ = true;
}

Result<void> OpenFile::check_size(const Memory& memory) {
  struct stat status {};
  if (fstat(buffered_.get(), &status) != 0) return fail(file_error(path_, errno));
  std::uint64_t length = static_cast<std::uint64_t>(status.st_size);
  if (S_ISBLK(status.st_mode)) {
    if (ioctl(buffered_.get(), BLKGETSIZE64, &length) != 0) return fail(file_error(path_, errno));
  } else if (!S_ISREG(status.st_mode)) {
    return fail(Code::invalid_argument,
                fmt::format("'{}' is neither a file nor a block device", path_));
  }
  offset_ = memory.offset();
  size_ = memory.bytes() > 0 || offset_ >= length ? memory.bytes() : length - offset_;
  if (size_ == 0)
    return fail(Code::invalid_argument,
                fmt::format("'{}' has no bytes from {} on", path_, offset_));
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset_ > most || size_ > most - offset_)
    return fail(Code::invalid_argument,
                fmt::format("no file has {} bytes from {} on", size_, offset_));
  if (offset_ + size_ > length) {
    const bool may_grow = options_.create && !read_only_ && S_ISREG(status.st_mode);
    if (!may_grow)
      return fail(Code::invalid_argument, fmt::format("{} bytes from {} leave '{}', which has {}",
                                                      size_, offset_, path_, length));
  }
  disk_ = &Disk::of(S_ISBLK(status.st_mode) ? status.st_rdev : status.st_dev);
  return open_sums(memory, length).and_then([&] { return grow(length); });
}

/// From so many bytes.
Result<void> OpenFile::grow(std::uint64_t length) {
  if (offset_ + size_ <= length) return {};
  if (ftruncate(buffered_.get(), static_cast<off_t>(offset_ + size_)) == 0) return {};
  return fail(file_error(path_, errno));
}

/// Of a file that has so many bytes. It is made longer afterwards: else what fails in between
/// leaves old sums to bytes that were never written.
Result<void> OpenFile::open_sums(const Memory& memory, std::uint64_t length) {
  const std::uint64_t block = options_.checked_block;
  if (block == 0) return {};
  if (!std::has_single_bit(block) || block < file_page)
    return fail(
        Code::invalid_argument,
        fmt::format("checked_block is a power of two from {} on, not {}", file_page, block));
  if (offset_ % block != 0 || size_ % block != 0)
    return fail(Code::invalid_argument,
                fmt::format("{} bytes of '{}' from {} on are no whole blocks of {}", size_, path_,
                            offset_, block));
  const bool named = !options_.sums.empty();
  std::error_code none;
  if (!named && (memory.path().empty() || !std::filesystem::is_regular_file(path_, none)))
    return fail(
        Code::invalid_argument,
        fmt::format("where the sums of '{}' lie has to be said (FileOptions::sums)", path_));
  auto opened = BlockSums::open({named ? options_.sums : path_ + ".xxh3",
                                 block,
                                 {offset_, size_},
                                 length,
                                 !read_only_,
                                 options_.durable});
  if (!opened) return fail(std::move(opened.error()));
  sums_ = std::move(*opened);
  return {};
}

Result<std::shared_ptr<OpenFile>> OpenFile::open(const Memory& memory) {
  const std::shared_ptr<OpenFile> file(new OpenFile);
  file->options_ = memory.file_options();
  file->read_only_ = memory.is_read_only();
  if (file->options_.queue_depth == 0 || file->options_.bytes_in_flight == 0)
    return fail(Code::invalid_argument, "a file's queue_depth and bytes_in_flight are 1 at least");
  if (file->options_.timeout <= Nanoseconds::zero())
    return fail(Code::invalid_argument, "a file's timeout is more than nothing");
  if (auto opened = file->open_descriptors(memory); !opened) return fail(std::move(opened.error()));
  auto fits = OpeningLock::take(file->buffered_.get(), !file->read_only_, file->path_)
                  .and_then([&](const OpeningLock&) { return file->check_size(memory); });
  if (!fits) return fail(std::move(fits.error()));
  file->try_direct();
  void* const address =
      mmap(nullptr, file->size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return fail(Code::out_of_memory, fmt::format("there are no addresses for {} bytes of '{}': {}",
                                                 file->size_, file->path_, std::strerror(errno)));
  file->address_ = static_cast<std::byte*>(address);
  file->disk_->add(file);
  return file;
}

OpenFile::~OpenFile() {
  if (address_ == nullptr) return;
  if (fork_generation_ == fork_generation()) disk_->remove(*this);  // else the parent's
  munmap(address_, size_);
}

}  // namespace weft::core
