// Counts of latencies, from which quantiles come with a bound on their error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <weft/deadline.hpp>

namespace weft::perf {

/// Log-linear: each power of two is cut into equal buckets, so that small and large values are kept
/// with the same relative error, whatever the tail. Adding costs no allocation.
class Histogram {
 public:
  /// A quantile is never less than the value it stands for, and greater by at most this share.
  static constexpr double error_bound = 1.0 / 128;

  Histogram() = default;
  /// As one was that had these buckets(), greatest() and mean().
  Histogram(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buckets,
            Nanoseconds greatest, double mean);

  void add(Nanoseconds value);
  void add(const Histogram& other);

  std::uint64_t count() const noexcept { return count_; }
  /// 0 of an empty histogram, like `greatest` and `mean`.
  Nanoseconds quantile(double share) const;
  /// Exact.
  Nanoseconds greatest() const noexcept { return Nanoseconds(greatest_); }
  double mean() const;

  /// Buckets that hold something: the greatest value that each may hold, and how many it does.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets() const;

 private:
  static constexpr unsigned bits = 7;  // 2^7 buckets for each power of two
  static constexpr std::size_t per_power = std::size_t{1} << bits;
  static constexpr std::size_t size = (64 - bits + 1) * per_power;

  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t last_of(std::size_t bucket);

  std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(size);
  std::uint64_t count_ = 0;
  std::uint64_t greatest_ = 0;
  double sum_ = 0;
};

}  // namespace weft::perf
