// What a drive has done for this process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::core {

/// From any thread.
struct DiskCounters {
  // Upper bounds of the buckets, inclusive, in nanoseconds; above the last one is one bucket more.
  static constexpr std::array<std::uint64_t, 14> bounds = {
      10'000,    20'000,    50'000,     100'000,    200'000,     500'000,       1'000'000,
      2'000'000, 5'000'000, 10'000'000, 50'000'000, 200'000'000, 1'000'000'000, 5'000'000'000};

  struct Way {  // reads, or writes
    std::atomic<std::uint64_t> bytes{0}, errors{0}, nanoseconds{0};
    std::array<std::atomic<std::uint64_t>, bounds.size() + 1> counts{};  // by bucket

    void ended(std::uint64_t time) noexcept {
      std::size_t bucket = 0;
      while (bucket < bounds.size() && time > bounds[bucket]) ++bucket;
      counts[bucket].fetch_add(1, std::memory_order_relaxed);
      nanoseconds.fetch_add(time, std::memory_order_relaxed);
    }
  };
  Way reads, writes;
  std::atomic<std::uint64_t> in_flight{0};
  std::atomic<std::uint64_t> corrupt_blocks{0};  // that were read and did not match their sums

  Way& of(bool write) noexcept { return write ? writes : reads; }
};

}  // namespace weft::core
