// The chunks of a loop's transfers, one after the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>
#include <weft/deadline.hpp>

#include "raw/config.hpp"

namespace weft::perf {

/// The stream of chunks that the endpoints share; it ends with a whole transfer.
class Chunks {
 public:
  using Counter = std::atomic<std::uint64_t>;
  struct Chunk {
    std::uint64_t transfer;
    std::size_t offset, length;
  };

  Chunks(const RawConfig& config, std::chrono::milliseconds time)
      : config_(config),
        chunk_bytes_(bytes_of(config)),
        chunks_((config.size + chunk_bytes_ - 1) / chunk_bytes_),
        positions_(positions_of(config)),
        completed_(config.window),
        end_(Clock::now() + time) {}

  std::optional<Chunk> take() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t transfer = next_ / chunks_, part = next_ % chunks_;
    // The first one in any case: no thread may have got a core in time.
    if (part == 0 && transfer > 0 &&
        (transfer * config_.size >= config_.max_bytes || Clock::now() >= end_))
      return std::nullopt;
    ++next_;
    const std::size_t start = part * chunk_bytes_;
    return Chunk{transfer, transfer % positions_ * config_.size + start,
                 std::min(chunk_bytes_, config_.size - start)};
  }
  /// Whether the transfer `window` before this one has completed.
  bool open(const Chunk& chunk) {
    return counter(chunk) >= chunk.transfer / config_.window * chunks_;
  }
  /// Chunks completed in the chunk's slot of the window.
  Counter& counter(const Chunk& chunk) { return completed_[chunk.transfer % config_.window]; }
  std::uint64_t count() const { return next_; }
  std::uint64_t transfers() const { return next_ / chunks_; }

 private:
  static std::size_t bytes_of(const RawConfig& config) {
    const bool whole = config.chunk == 0 || config.operation == RawOperation::message;
    return whole ? config.size : std::min(config.chunk, config.size);
  }

  const RawConfig& config_;
  const std::size_t chunk_bytes_;
  const std::uint64_t chunks_;
  const std::size_t positions_;
  std::vector<Counter> completed_;
  const Clock::time_point end_;
  std::mutex mutex_;
  std::uint64_t next_ = 0;
};

}  // namespace weft::perf
