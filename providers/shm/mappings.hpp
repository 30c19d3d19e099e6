// Memory of a neighbour's that this process has mapped, to copy straight to and from it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/error.hpp>

#include "base/process.hpp"
#include "base/sync.hpp"
#include "providers/shm/region.hpp"

namespace weft::providers::shm {

/// A file, by what stays the same however it is opened.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool writable = false;  // memory that is only read is mapped read-only
  bool operator==(const FileIdentity&) const = default;
};

/// All of a file, mapped. It can't shrink. The endpoints of this process share one mapping. The
/// last of them unmaps it on another thread: the last unmapping of a file frees its pages, which
/// takes long.
class MappedFile {
 public:
  /// As large as the file is by now, and `needed` bytes at least. Fails where no room is left, for
  /// more files or for addresses.
  static Result<std::shared_ptr<const MappedFile>> of(const Descriptor& file,
                                                      const FileIdentity& identity,
                                                      std::uint64_t bytes, std::uint64_t needed);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const FileIdentity& identity() const noexcept { return identity_; }
  std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  MappedFile(const FileIdentity& identity, std::byte* data, std::uint64_t size)
      : identity_(identity), data_(data), size_(size) {}
  const FileIdentity identity_;
  std::byte* const data_;
  const std::uint64_t size_;
};

/// An entry's memory as this process sees it. Its bounds are this process's own: what the neighbour
/// writes into the entry later changes nothing.
struct View {
  std::shared_ptr<const MappedFile> file;  // null: the kernel copies, `why_not`
  std::byte* start = nullptr;
  std::uint64_t length = 0;
  bool writable = false;
  std::string why_not = {};

  bool lets(bool writes, std::uint64_t offset, std::size_t bytes) const noexcept {
    return file != nullptr && (writable || !writes) && offset <= length && bytes <= length - offset;
  }
};

/// The mappings of one neighbour's entries. From any thread.
class Mappings {
 public:
  /// The neighbour's entries, our claim with it, and its process.
  Mappings(const Head& head, Claim& claim, std::shared_ptr<const core::HostProcess> process)
      : head_(head), claim_(claim), process_(std::move(process)) {}

  /// Maps the file of an open entry the first time, for which it may wait for the process. Null if
  /// the entry is closed.
  std::shared_ptr<const View> of(std::uint64_t key);
  /// The same process, to be asked in another way from now on.
  void ask_by(std::shared_ptr<const core::HostProcess> process);
  /// Null if of() has not been called for it.
  std::shared_ptr<const View> known(std::uint64_t key);
  /// Whether entries were closed since it was asked last. By one thread.
  bool news() noexcept {
    const std::uint64_t closings = head_.closings.load(std::memory_order_seq_cst);
    return std::exchange(seen_closings_, closings) != closings;
  }
  /// Lets go of entries that are closed, and of files that none has lain in for a while: a segment
  /// whose grants come and go stays mapped. False if files are kept that none lies in.
  bool tidy(Clock::time_point now);

 private:
  struct Kept {
    std::shared_ptr<const MappedFile> file;
    Clock::time_point unused_since = {};  // the clock's start: it is used
  };
  static View make(const Entry& entry, std::uint64_t owner, const core::HostProcess& process);
  void tell_why_not(const Entry& entry, const View& view) WEFT_REQUIRES(mutex_);
  void keep(const std::shared_ptr<const MappedFile>& file) WEFT_REQUIRES(mutex_);
  static Result<View> open(const Entry& entry, std::uint64_t owner,
                           const core::HostProcess& process);
  void forget_closed() WEFT_REQUIRES(mutex_);

  const Head& head_;
  Claim& claim_;
  std::uint64_t seen_closings_ = 0;

  core::Mutex mutex_;
  std::shared_ptr<const core::HostProcess> process_ WEFT_GUARDED_BY(mutex_);
  // By key.
  std::unordered_map<std::uint64_t, std::shared_ptr<const View>> views_ WEFT_GUARDED_BY(mutex_);
  std::vector<Kept> files_ WEFT_GUARDED_BY(mutex_);
  // Views from which on those of closed entries go without being told.
  static constexpr std::size_t views_before_tidying = 4096;
  std::size_t tidy_at_ WEFT_GUARDED_BY(mutex_) = views_before_tidying;
  bool told_ WEFT_GUARDED_BY(mutex_) = false;  // the log, of a file that could not be mapped
};

}  // namespace weft::providers::shm
