// A drive, or a file system without one: the device whose memory are files.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <weft/transfer.hpp>

#include "base/sync.hpp"
#include "device/device.hpp"
#include "device/file/disk_counters.hpp"
#include "device/file/open_file.hpp"

namespace weft::core {

class SharedQueue;

/// From any thread; lives until the process ends. A forked child has its own.
class Disk final : public Device {
 public:
  /// That files of this device number lie on.
  static Disk& of(dev_t device);
  /// All that files were opened on.
  static std::vector<const Disk*> all();

  Disk(std::string name, dev_t number) : name_(std::move(name)), number_(number) {}

  /// "nvme0n1", or "0:35" of a file system without a drive.
  const std::string& name() const noexcept { return name_; }
  dev_t number() const noexcept { return number_; }
  DiskCounters& counters() const noexcept { return counters_; }

  /// The file that the address is of; null if it is of none.
  std::shared_ptr<OpenFile> find(const void* address) const;

  /// Room for a read or write, which is kept until leave(). False: not now, for that class.
  bool enter(Priority priority, std::uint64_t bytes) const;
  void leave(std::uint64_t bytes) const;

  /// The queue of all copies that no rail carries. It is closed with the last file.
  std::shared_ptr<SharedQueue> copies() const;
  /// Learns which of them have ended.
  void serve_copies() const;

  /// So many reads and writes have not ended in time. Nothing new begins meanwhile.
  std::atomic<std::uint64_t>& silent() const noexcept { return silent_; }

  MemoryKind kind() const noexcept override { return MemoryKind::file; }
  const std::string& pci() const noexcept override { return none_; }
  bool direct() const noexcept override { return false; }
  void copy(void*, const void*, std::size_t) const override {}
  Result<void> hash(Xxh3& hash, const void* memory, std::size_t bytes) const override;
  Result<std::unique_ptr<CopyQueue>> open_queue() const override;
  Result<std::unique_ptr<Pinned>> pin(void*, std::size_t) const override {
    return std::make_unique<Pinned>();
  }
  Result<Lent> lend(const void*, std::size_t) const override {
    return fail(Code::unsupported, "a file is not lent");
  }
  Result<std::unique_ptr<Mapped>> map(const Lent&, std::size_t) const override {
    return fail(Code::unsupported, "files are not mapped");
  }

 private:
  friend class OpenFile;
  void add(const std::shared_ptr<OpenFile>& file);
  void remove(const OpenFile& file);
  void limit() WEFT_REQUIRES(mutex_);

  const std::string name_, none_;
  const dev_t number_;
  mutable DiskCounters counters_;
  mutable std::atomic<std::uint64_t> silent_{0};
  mutable Mutex mutex_;
  struct Known {
    const OpenFile* file;
    std::weak_ptr<OpenFile> owner;
  };
  std::map<const std::byte*, Known> files_ WEFT_GUARDED_BY(mutex_);  // by their ends
  FileOptions limits_ WEFT_GUARDED_BY(mutex_);
  mutable std::uint64_t bytes_ WEFT_GUARDED_BY(mutex_) = 0;
  mutable unsigned depth_ WEFT_GUARDED_BY(mutex_) = 0;
  mutable std::shared_ptr<SharedQueue> copies_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::core
