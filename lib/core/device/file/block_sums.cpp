#include "device/file/block_sums.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/system_error.hpp"
#include "base/xxh3.hpp"
#include "device/file/file_errors.hpp"
#include "device/file/file_lock.hpp"
#include "device/file/file_page.hpp"
#include "device/file/file_room.hpp"

namespace weft::core {
namespace {

/// As the machine has it, like the sums: they stay with the machine's drive.
struct Head {
  std::array<char, 8> magic = {'W', 'E', 'F', 'T', 'X', 'X', 'H', '3'};
  std::uint64_t version = 1;
  std::uint64_t block = 0;
};
constexpr std::uint64_t head_bytes = file_page;

/// Where the sum of the block lies that begins there in the file.
std::uint64_t place_of(std::uint64_t at, std::uint64_t block) {
  return head_bytes + at / block * sizeof(std::uint64_t);
}

Result<std::uint64_t> length_of(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return fail(file_error(path, errno));
  if (!S_ISREG(status.st_mode))
    return fail(Code::invalid_argument, fmt::format("'{}' is no file for sums", path));
  return static_cast<std::uint64_t>(status.st_size);
}

/// The name of a file that was made is lost with the power until then.
Result<void> sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const Descriptor opened(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || fsync(opened.get()) != 0) return fail(file_error(folder, errno));
  return {};
}

}  // namespace

bool overlap(const Range& a, const Range& b) noexcept {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

std::uint64_t BlockSums::of(const std::byte* block, std::uint64_t bytes) noexcept {
  const std::uint64_t sum = XXH3_64bits(block, bytes);
  return sum == 0 ? 1 : sum;
}

Result<std::unique_ptr<BlockSums>> BlockSums::open(const Wanted& wanted) {
  std::unique_ptr<BlockSums> sums(new BlockSums);
  sums->path_ = wanted.path;
  sums->block_ = wanted.block;
  sums->durable_ = wanted.durable;
  const int access = wanted.write ? O_RDWR | O_CREAT : O_RDONLY;
  sums->file_ = Descriptor(::open(wanted.path.c_str(), access | O_CLOEXEC | O_NOCTTY, 0666));
  if (sums->file_.get() < 0) return fail(file_error(wanted.path, errno));
  return sums->lock(wanted.bytes, wanted.write)
      .and_then([&] { return sums->check_head(wanted); })
      .and_then([&] { return sums->fit(wanted); })
      .map([&] { return std::move(sums); });
}

Result<void> BlockSums::lock(const Range& blocks, bool write) {
  const std::uint64_t begin = place_of(blocks.offset, block_);
  const std::uint64_t end = place_of(blocks.offset + blocks.length, block_);
  const Range bytes{begin, end - begin};
  const int failed = try_file_lock(file_.get(), write ? F_WRLCK : F_RDLCK, bytes);
  if (failed == 0 && is_file_lock_met(path_, bytes)) return {};
  if (!is_file_locked(failed))
    return fail(
        Code::unsupported,
        fmt::format("'{}': blocks can't be checked here, for two may write one at the same time: "
                    "the file system {}. Name a file of sums in another one "
                    "(FileOptions::sums), the same for all, or leave checked_block 0",
                    path_,
                    failed != 0
                        ? fmt::format("has no locks ({}, errno {})", error_text(failed), failed)
                        : "gives one lock to several"));
  return fail(Code::unavailable,
              fmt::format("'{}' is in use: of blocks that are checked, one segment may write, or "
                          "several may read",
                          path_));
}

Result<void> BlockSums::check_head(const Wanted& wanted) {
  const auto length = length_of(file_.get(), path_);
  if (!length) return fail(length.error());
  if (*length == 0 && wanted.write) return make_head(wanted);
  Head head;
  const ssize_t got = pread(file_.get(), &head, sizeof head, 0);
  if (got < 0) return fail(file_error(path_, errno));
  if (got != sizeof head || head.magic != Head().magic)
    return fail(Code::invalid_argument, fmt::format("'{}' is no file of sums", path_));
  if (head.version != Head().version)
    return fail(Code::invalid_argument, fmt::format("'{}' has version {}, this engine reads {}",
                                                    path_, head.version, Head().version));
  if (head.block != block_)
    return fail(Code::invalid_argument, fmt::format("'{}' has sums of blocks of {} bytes, not {}",
                                                    path_, head.block, block_));
  return {};
}

Result<void> BlockSums::make_head(const Wanted& wanted) {
  Head head;
  head.block = block_;
  if (pwrite(file_.get(), &head, sizeof head, 0) != sizeof head)
    return fail(file_error(path_, errno));
  return wanted.durable ? sync_folder_of(path_) : Result<void>();
}

/// As long as the file's blocks need. Of blocks that the file did not have, it forgets all.
Result<void> BlockSums::fit(const Wanted& wanted) {
  const auto length = length_of(file_.get(), path_);
  if (!length) return fail(length.error());
  const std::uint64_t end = wanted.bytes.offset + wanted.bytes.length;
  const std::uint64_t known = place_of(std::min(wanted.known, end), block_);
  const std::uint64_t needed = place_of(end, block_);
  if (!wanted.write) {
    if (*length >= needed) return {};
    return fail(Code::unavailable, fmt::format("'{}' ends before the sums of byte {}", path_, end));
  }
  const auto resize = [&](std::uint64_t bytes) {
    return ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0;
  };
  const bool knows_more = *length > known;
  const bool forgets = knows_more && known < needed;
  if ((forgets && !resize(known)) || ((forgets || *length < needed) && !resize(needed)))
    return fail(file_error(path_, errno));
  if (wanted.reserve)
    if (auto reserved = reserve_room(file_.get(), path_, {0, needed}); !reserved) return reserved;
  if (wanted.durable && fsync(file_.get()) != 0) return fail(file_error(path_, errno));
  return {};
}

Io BlockSums::io(std::span<std::uint64_t> sums, std::uint64_t at, bool write,
                 void* owner) const noexcept {
  return {file_.get(),
          write,
          durable_,
          reinterpret_cast<std::byte*>(sums.data()),
          sums.size_bytes(),
          place_of(at, block_),
          owner,
          0};
}

bool BlockSums::enter(const Range& blocks, bool write) {
  const Lock lock(mutex_);
  if (std::any_of(held_.begin(), held_.end(), [&](const Held& each) {
        return (write || each.write) && overlap(each.blocks, blocks);
      }))
    return false;
  held_.push_back({blocks, write});
  return true;
}

void BlockSums::leave(const Range& blocks) {
  const Lock lock(mutex_);
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& each) {
    return each.blocks.offset == blocks.offset && each.blocks.length == blocks.length;
  });
  if (found != held_.end()) held_.erase(found);
}

}  // namespace weft::core
