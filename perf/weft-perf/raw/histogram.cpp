#include "raw/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::perf {

Histogram::Histogram(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buckets,
                     Nanoseconds greatest, double mean)
    : greatest_(static_cast<std::uint64_t>(greatest.count())) {
  for (const auto& [value, count] : buckets) {
    counts_[bucket_of(value)] += count;
    count_ += count;
  }
  sum_ = mean * static_cast<double>(count_);
}

std::size_t Histogram::bucket_of(std::uint64_t value) {
  if (value < per_power) return value;
  const auto power = static_cast<unsigned>(std::bit_width(value)) - bits - 1;
  return (power + 1) * per_power + ((value >> power) - per_power);
}

std::uint64_t Histogram::last_of(std::size_t bucket) {
  if (bucket < per_power) return bucket;
  const std::size_t power = bucket / per_power - 1;
  // In the last power the sum wraps around to the greatest number there is.
  return ((per_power + bucket % per_power + 1) << power) - 1;
}

void Histogram::add(Nanoseconds value) {
  const auto number = static_cast<std::uint64_t>(std::max<Nanoseconds::rep>(value.count(), 0));
  ++counts_[bucket_of(number)];
  ++count_;
  greatest_ = std::max(greatest_, number);
  sum_ += static_cast<double>(number);
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < size; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  greatest_ = std::max(greatest_, other.greatest_);
  sum_ += other.sum_;
}

Nanoseconds Histogram::quantile(double share) const {
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t passed = 0;
  for (std::size_t i = 0; i < size; ++i) {
    passed += counts_[i];
    if (passed >= rank) return Nanoseconds(std::min(last_of(i), greatest_));
  }
  return Nanoseconds(greatest_);
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Histogram::buckets() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> filled;
  for (std::size_t i = 0; i < size; ++i)
    if (counts_[i] != 0) filled.emplace_back(last_of(i), counts_[i]);
  return filled;
}

}  // namespace weft::perf
