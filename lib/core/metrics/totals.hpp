// The sum of an engine's transfers. Each is counted once, at its end; the sum is made on request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#include <weft/deadline.hpp>
#include <weft/transfer.hpp>

#include "base/priorities.hpp"
#include "base/sync.hpp"

namespace weft::core {

// Upper bounds of the histograms' buckets, inclusive; above the last one is one bucket more.
inline constexpr std::array<std::uint64_t, 21> nanosecond_bounds = {
    5'000,         10'000,         20'000,        50'000,      100'000,       200'000,
    500'000,       1'000'000,      2'000'000,     5'000'000,   10'000'000,    20'000'000,
    50'000'000,    100'000'000,    200'000'000,   500'000'000, 1'000'000'000, 2'000'000'000,
    5'000'000'000, 10'000'000'000, 30'000'000'000};
inline constexpr std::array<std::uint64_t, 11> byte_bounds = {
    std::uint64_t{4} << 10,   std::uint64_t{16} << 10, std::uint64_t{64} << 10,
    std::uint64_t{256} << 10, std::uint64_t{1} << 20,  std::uint64_t{4} << 20,
    std::uint64_t{16} << 20,  std::uint64_t{64} << 20, std::uint64_t{256} << 20,
    std::uint64_t{1} << 30,   std::uint64_t{4} << 30};

/// The sum and the buckets of what is small or fast lie in one cache line.
template <const auto& Bounds>
struct alignas(cache_line) Histogram {
  std::uint64_t sum = 0;
  std::array<std::uint64_t, Bounds.size() + 1> counts{};  // by bucket

  void add(std::uint64_t value) {
    std::size_t bucket = 0;
    while (bucket < Bounds.size() && value > Bounds[bucket]) ++bucket;
    ++counts[bucket];
    sum += value;
  }
  Histogram& operator+=(const Histogram& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
    sum += other.sum;
    return *this;
  }
};
using TimeHistogram = Histogram<nanosecond_bounds>;
using SizeHistogram = Histogram<byte_bounds>;

inline constexpr std::size_t directions = 2, final_states = 4;

/// The facts, besides the rails, that decide how a transfer's bytes are copied.
struct PathKind {
  Direction direction = Direction::write;
  TransportKind transport = TransportKind::one_sided;
  MemoryKind local = MemoryKind::host, remote = MemoryKind::host;
  bool same_host = false;

  static constexpr std::size_t count = 256;
  std::size_t index() const noexcept {
    return static_cast<std::size_t>(transport) << 6 |
           static_cast<std::size_t>(direction == Direction::read) << 5 |
           static_cast<std::size_t>(local) << 3 | static_cast<std::size_t>(remote) << 1 |
           std::size_t{same_host};
  }
  static PathKind at(std::size_t index) noexcept {
    return {(index & 32) != 0 ? Direction::read : Direction::write,
            static_cast<TransportKind>(index >> 6), static_cast<MemoryKind>(index >> 3 & 3),
            static_cast<MemoryKind>(index >> 1 & 3), (index & 1) != 0};
  }
};

/// A transfer that has ended.
struct EndedTransfer {
  State state = State::done;
  Priority priority = Priority::normal;
  PathKind path;
  Nanoseconds elapsed{}, queued{};
  std::uint64_t bytes = 0, bytes_done = 0, copied = 0, ranges = 0, runs = 0, retries = 0;
};

struct TransferTotals {
  /// The counters that one transfer adds to lie together: the lines are seldom in the nearest cache
  /// when it ends, since its bytes have gone through there.
  struct alignas(cache_line) Class {
    std::array<std::uint64_t, final_states> ended{};  // by State, from `done` on
    std::uint64_t bytes_done = 0, ranges = 0, runs = 0, retries = 0;
    TimeHistogram elapsed, queued;  // of those that are done
    SizeHistogram sizes;            // likewise

    Class& operator+=(const Class& other);
  };
  struct Carried {
    std::uint64_t bytes = 0, copied = 0;  // by this engine
  };
  std::array<std::array<Class, priorities>, directions> classes{};
  std::array<Carried, PathKind::count> carried{};

  Class of(Direction direction) const;
  Class of_priority(std::size_t priority) const;

  void add(const EndedTransfer& transfer);
  TransferTotals& operator+=(const TransferTotals& other);
};

/// Totals by rail, so that the threads of two rails seldom meet. From any thread.
class TransferCounters {
 public:
  explicit TransferCounters(std::size_t rails);
  /// `rail`: the first that carried it.
  void add(std::size_t rail, const EndedTransfer& transfer) {
    Shard& shard = shards_[rail];
    const Lock lock(shard.mutex);
    shard.totals.add(transfer);
  }
  /// By rail. What stands in one of them belongs together.
  std::vector<TransferTotals> read() const;

 private:
  struct alignas(cache_line) Shard {
    mutable Mutex mutex;
    TransferTotals totals WEFT_GUARDED_BY(mutex);
  };
  const std::size_t rails_;
  const std::unique_ptr<Shard[]> shards_;
};

}  // namespace weft::core
