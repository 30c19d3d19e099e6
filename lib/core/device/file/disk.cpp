#include "device/file/disk.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/process.hpp"
#include "base/xxh3.hpp"
#include "device/file/file_errors.hpp"
#include "device/file/file_page.hpp"
#include "device/file/file_queue.hpp"
#include "device/file/shared_queue.hpp"

namespace weft::core {
namespace {

struct Disks {
  const std::uint64_t fork_generation = core::fork_generation();
  Mutex mutex;
  std::map<dev_t, std::unique_ptr<Disk>> all WEFT_GUARDED_BY(mutex);
};

/// As long as the process; those of its parent are not touched by a child.
Disks& disks() {
  static std::atomic<Disks*> known{new Disks};
  Disks* now = known;
  if (now->fork_generation == fork_generation()) return *now;
  auto anew = std::make_unique<Disks>();
  return known.compare_exchange_strong(now, anew.get()) ? *anew.release() : *now;
}

std::string name_of(dev_t device) {
  const std::string numbers = fmt::format("{}:{}", major(device), minor(device));
  std::error_code none;
  const auto link = std::filesystem::read_symlink("/sys/dev/block/" + numbers, none);
  return link.empty() ? numbers : link.filename().string();
}

/// Of what a device has at a time, the part that a class may use: what prefetches must not delay
/// what a token waits for.
std::uint64_t share(Priority priority, std::uint64_t all) {
  switch (priority) {
    case Priority::latency:
      return all;
    case Priority::normal:
      return std::max<std::uint64_t>(1, all - all / 4);
    case Priority::bulk:
      return std::max<std::uint64_t>(1, all / 4);
  }
  return all;
}

}  // namespace

Disk& Disk::of(dev_t device) {
  Disks& known = disks();
  const Lock lock(known.mutex);
  auto& disk = known.all[device];
  if (!disk) disk = std::make_unique<Disk>(name_of(device), device);
  return *disk;
}

std::vector<const Disk*> Disk::all() {
  Disks& known = disks();
  const Lock lock(known.mutex);
  std::vector<const Disk*> all;
  for (const auto& [number, disk] : known.all) all.push_back(disk.get());
  return all;
}

void Disk::add(const std::shared_ptr<OpenFile>& file) {
  const Lock lock(mutex_);
  files_[file->address() + file->size()] = {file.get(), file};
  limit();
}

void Disk::remove(const OpenFile& file) {
  std::shared_ptr<SharedQueue> needless;
  const Lock lock(mutex_);
  files_.erase(file.address() + file.size());
  limit();
  if (files_.empty()) needless.swap(copies_);
}

void Disk::limit() {
  bool first = true;
  for (const auto& [end, known] : files_) {
    const FileOptions& asked = known.file->options();
    limits_.queue_depth =
        first ? asked.queue_depth : std::min(limits_.queue_depth, asked.queue_depth);
    limits_.bytes_in_flight =
        first ? asked.bytes_in_flight : std::min(limits_.bytes_in_flight, asked.bytes_in_flight);
    first = false;
  }
}

std::shared_ptr<OpenFile> Disk::find(const void* address) const {
  const auto* const wanted = static_cast<const std::byte*>(address);
  const Lock lock(mutex_);
  const auto next = files_.upper_bound(wanted);
  if (next == files_.end() || wanted < next->second.file->address()) return nullptr;
  return next->second.owner.lock();
}

/// One always may: else what is larger than the limit would wait for ever.
bool Disk::enter(Priority priority, std::uint64_t bytes) const {
  const Lock lock(mutex_);
  if (depth_ > 0 && (depth_ >= share(priority, limits_.queue_depth) ||
                     bytes_ + bytes > share(priority, limits_.bytes_in_flight)))
    return false;
  ++depth_;
  bytes_ += bytes;
  counters_.in_flight = depth_;
  return true;
}

void Disk::leave(std::uint64_t bytes) const {
  const Lock lock(mutex_);
  --depth_;
  bytes_ -= bytes;
  counters_.in_flight = depth_;
}

std::shared_ptr<SharedQueue> Disk::copies() const {
  const Lock lock(mutex_);
  if (!copies_) copies_ = std::make_shared<SharedQueue>(*this);
  return copies_;
}

void Disk::serve_copies() const {
  std::shared_ptr<SharedQueue> copies;
  {
    const Lock lock(mutex_);
    copies = copies_;
  }
  if (copies) copies->serve();
}

Result<void> Disk::hash(Xxh3& hash, const void* memory, std::size_t bytes) const {
  const auto file = find(memory);
  if (!file) return fail(Code::internal, "no file has that address");
  constexpr std::size_t slice = std::size_t{1} << 20;
  const auto buffer = make_file_pages(slice);
  if (!buffer) return fail(Code::out_of_memory, "there is no memory to hash a file");
  std::uint64_t at = file->at(static_cast<const std::byte*>(memory));
  while (bytes > 0) {
    const ssize_t got =
        pread(file->fd(false), buffer.get(), std::min(bytes, slice), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(file_io_error(file->path(), errno, false));
    if (got == 0) return fail(file_cut_off(file->path(), file->fd(false), at));
    const auto length = static_cast<std::size_t>(got);
    hash.add(buffer.get(), length);
    bytes -= length;
    at += length;
  }
  return {};
}

Result<std::unique_ptr<CopyQueue>> Disk::open_queue() const {
  return std::make_unique<FileQueue>(*this, open_io_channel());
}

}  // namespace weft::core
