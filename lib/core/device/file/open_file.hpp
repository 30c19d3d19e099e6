// A file that stands for memory: descriptors, limits, and the addresses that stand for its bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <weft/error.hpp>
#include <weft/memory.hpp>

#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "device/file/block_sums.hpp"

namespace weft::core {

class Disk;

/// From any thread.
class OpenFile {
 public:
  /// Opens what Memory::file describes. May block.
  static Result<std::shared_ptr<OpenFile>> open(const Memory& memory);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Addresses that are the file's alone. Nothing can be read or written there.
  std::byte* address() const noexcept { return address_; }
  std::size_t size() const noexcept { return size_; }
  bool read_only() const noexcept { return read_only_; }
  const std::string& path() const noexcept { return path_; }
  const FileOptions& options() const noexcept { return options_; }
  const Disk& disk() const noexcept { return *disk_; }
  /// How it is read and written, as a part of a sentence: "a file, by direct I/O (io_uring)".
  std::string how() const;

  /// Whole pages of it may go past the page cache.
  bool direct() const noexcept { return direct_ok_; }
  /// The file system has refused that after all.
  void refuse_direct() noexcept { direct_ok_ = false; }
  int fd(bool direct) const noexcept { return (direct ? direct_ : buffered_).get(); }
  /// In the file, of one of its addresses.
  std::uint64_t at(const std::byte* address) const noexcept {
    return offset_ + static_cast<std::uint64_t>(address - address_);
  }
  /// Null: its blocks are not checked.
  BlockSums* sums() const noexcept { return sums_.get(); }
  /// Why it was not done in time: of what was begun, and of what was not.
  Error silent() const;
  Error held_up() const;

 private:
  OpenFile() = default;
  Result<void> open_descriptors(const Memory& memory);
  Result<void> check_size(const Memory& memory);
  Result<void> open_sums(const Memory& memory, std::uint64_t length);
  Result<void> grow(std::uint64_t length);
  void try_direct();
  std::string why_not_direct() const;

  Descriptor buffered_, direct_;
  std::string path_, why_buffered_;
  FileOptions options_;
  bool read_only_ = false;
  std::atomic<bool> direct_ok_{false};
  std::uint64_t offset_ = 0;
  std::size_t size_ = 0;
  std::byte* address_ = nullptr;
  Disk* disk_ = nullptr;
  std::unique_ptr<BlockSums> sums_;
  const std::uint64_t fork_generation_ = fork_generation();
};

}  // namespace weft::core
