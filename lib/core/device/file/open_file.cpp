#include "device/file/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/system_error.hpp"
#include "device/file/disk.hpp"
#include "device/file/file_errors.hpp"
#include "device/file/file_lock.hpp"
#include "device/file/file_page.hpp"
#include "device/file/file_room.hpp"
#include "device/file/io_channel.hpp"

namespace weft::core {
namespace {

constexpr const char* no_direct = "the file system takes no direct I/O";

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
                              path_, error_text(refused)));
    buffered_ = Descriptor(fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
    why_buffered_ = fmt::format("it can't be opened anew: {}", error_text(refused));
  }
  if (buffered_.get() < 0) return fail(file_error(path_, refused));
  if (!options_.direct)
    why_buffered_ = "that was asked for";
  else if (why_buffered_.empty())
    direct_ = open_at(name, access | O_DIRECT);
  if (direct_.get() < 0 && why_buffered_.empty())
    why_buffered_ =
        errno == EINVAL ? no_direct : fmt::format("direct I/O is refused: {}", error_text(errno));
  return {};
}

void OpenFile::try_direct() {
  if (why_buffered_.empty()) why_buffered_ = why_not_direct();
  direct_ok_ = why_buffered_.empty();
  if (!direct_ok_) direct_ = Descriptor();  // processes may have few
}

/// Why whole pages don't go to the drive and back without the page cache; empty: they do.
std::string OpenFile::why_not_direct() const {
  const std::uint64_t first = (offset_ + file_page - 1) / file_page * file_page;
  if (first + file_page > offset_ + size_) return "there is no whole page";
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (statx(direct_.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) return no_direct;
    if (status.stx_dio_offset_align > file_page || status.stx_dio_mem_align > file_page)
      return fmt::format("direct I/O here takes blocks of {} bytes",
                         std::max(status.stx_dio_offset_align, status.stx_dio_mem_align));
  }
#endif
  // Some file systems refuse it only when it is tried.
  const auto page = make_file_pages(file_page);
  if (!page || (pread(direct_.get(), page.get(), file_page, 0) < 0 && errno == EINVAL))
    return no_direct;
  return "";
}

Result<void> OpenFile::check_size(const Memory& memory) {
  struct stat status {};
  if (fstat(buffered_.get(), &status) != 0) return fail(file_error(path_, errno));
  const auto known = file_length(buffered_.get(), path_);
  if (!known) return fail(known.error());
  const std::uint64_t length = *known;
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
  if (S_ISBLK(status.st_mode)) options_.reserve = false;  // it has its room
  const bool grows = options_.reserve || !memory.path().empty();
  return open_sums(memory, length).and_then([&] { return grows ? grow(length) : Result<void>(); });
}

/// From so many bytes. That of a descriptor grows as it is written.
Result<void> OpenFile::grow(std::uint64_t length) {
  const auto resize = [&](std::uint64_t bytes) {
    return ftruncate(buffered_.get(), static_cast<off_t>(bytes)) == 0;
  };
  const bool longer = offset_ + size_ > length;
  if (!options_.reserve)
    return !longer || resize(offset_ + size_) ? Result<void>() : fail(file_error(path_, errno));
  auto reserved = reserve_room(buffered_.get(), path_, {offset_, size_});
  // What there was of it is given back.
  if (!reserved && longer && !resize(length)) return fail(file_error(path_, errno));
  return reserved;
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
                                 options_.durable,
                                 options_.reserve});
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
  if (file->options_.reserve && file->read_only_)
    return fail(Code::invalid_argument,
                "room is reserved (FileOptions::reserve) to write a file, "
                "and it is to be read_only");
  if (auto opened = file->open_descriptors(memory); !opened) return fail(std::move(opened.error()));
  auto fits = OpeningLock::take(file->buffered_.get(), !file->read_only_, file->path_)
                  .and_then([&](const OpeningLock&) { return file->check_size(memory); });
  if (!fits) return fail(std::move(fits.error()));
  file->try_direct();
  void* const address =
      mmap(nullptr, file->size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return fail(Code::out_of_memory, fmt::format("there are no addresses for {} bytes of '{}': {}",
                                                 file->size_, file->path_, error_text(errno)));
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
