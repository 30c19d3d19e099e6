// The sums of a file's blocks, in a file beside it: a page with a head, then 8 bytes for each block
// of the file. 0: the block has no sum, and is not checked.
//
// A sum is written before its block is. So a crash in between, or in the middle of the block,
// leaves a block that does not match: it can't be taken for a whole one, whether it had a sum
// before or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "base/descriptor.hpp"
#include "base/sync.hpp"
#include "device/file/io_channel.hpp"

namespace weft::core {

/// Whether they have bytes in common.
bool overlap(const Range& a, const Range& b) noexcept;

/// From any thread.
class BlockSums {
 public:
  struct Wanted {
    std::string path;
    std::uint64_t block = 0;  // bytes
    Range bytes;              // of the file: whole blocks
    std::uint64_t known = 0;  // the file had so many bytes before: sums behind them are of no block
    bool write = false;
    bool durable = false;
    bool reserve = false;  // room on the drive
  };
  /// Makes the file if there is none and it may be written, and makes it as long as it has to be.
  /// Until it is closed, nobody else may write these blocks with their sums, nor read them if
  /// `write`: `unsupported` where no lock can keep them off. With the OpeningLock of the file, and
  /// before that is made longer. May block.
  static Result<std::unique_ptr<BlockSums>> open(const Wanted& wanted);
  /// Of one block; never 0.
  static std::uint64_t of(const std::byte* block, std::uint64_t bytes) noexcept;

  std::uint64_t block() const noexcept { return block_; }
  const std::string& path() const noexcept { return path_; }
  /// Whether these bytes of the file are whole blocks.
  bool whole(const Range& bytes) const noexcept {
    return bytes.offset % block_ == 0 && bytes.length % block_ == 0;
  }
  /// Reads or writes the sums of the blocks from `at` on.
  Io io(std::span<std::uint64_t> sums, std::uint64_t at, bool write, void* owner) const noexcept;

  /// The blocks are to be read or written, until leave(). False: not now, while others write them,
  /// or read what is to be written. So nobody sees a block that is half written.
  bool enter(const Range& blocks, bool write);
  void leave(const Range& blocks);

 private:
  BlockSums() = default;
  Result<void> check_head(const Wanted& wanted);
  Result<void> make_head(const Wanted& wanted);
  Result<void> fit(const Wanted& wanted);
  Result<void> lock(const Range& blocks, bool write);

  Descriptor file_;
  std::string path_;
  std::uint64_t block_ = 0;
  bool durable_ = false;
  struct Held {
    Range blocks;
    bool write;
  };
  Mutex mutex_;
  std::vector<Held> held_ WEFT_GUARDED_BY(mutex_);  // few: what the drive has at a time
};

}  // namespace weft::core
