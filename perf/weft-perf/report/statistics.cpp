#include "report/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace weft::perf {
namespace {

constexpr std::size_t resamples = 4000;
constexpr std::size_t most_exact = 50;  // values, for which the exact test takes milliseconds

using Random = std::mt19937_64;

std::vector<double> resample(std::span<const double> values, Random& random) {
  std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
  std::vector<double> drawn(values.size());
  for (double& value : drawn) value = values[pick(random)];
  return drawn;
}

template <typename Draw>
Interval interval_around(double middle, double confidence, Draw&& draw) {
  std::vector<double> drawn(resamples);
  for (double& value : drawn) value = draw();
  std::sort(drawn.begin(), drawn.end());
  const auto cut = static_cast<std::size_t>((1 - confidence) / 2 * static_cast<double>(resamples));
  return {drawn[cut], middle, drawn[resamples - 1 - cut]};
}

/// Equal values share the mean of their ranks, so twice a rank is whole.
struct Ranks {
  std::vector<std::size_t> doubled;  ///< Of all values, in their order.
  std::size_t sum_of_first = 0;      ///< Of those of the first list.
};

Ranks ranks_of(std::span<const double> a, std::span<const double> b) {
  std::vector<std::pair<double, bool>> values;  // The second: of the first list.
  for (const double value : a) values.emplace_back(value, true);
  for (const double value : b) values.emplace_back(value, false);
  std::sort(values.begin(), values.end());
  Ranks ranks;
  for (std::size_t begin = 0, end = 0; begin < values.size(); begin = end) {
    while (end < values.size() && values[end].first == values[begin].first) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks.doubled.push_back(begin + 1 + end);
      if (values[i].second) ranks.sum_of_first += begin + 1 + end;
    }
  }
  return ranks;
}

/// The share of all choices of `count` ranks whose sum is as far from the mean.
double exactly(const std::vector<std::size_t>& ranks, std::size_t count, double mean,
               double distance) {
  const std::size_t greatest = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  // ways[n][sum]: how many choices of n ranks have that sum.
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(greatest + 1));
  ways[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t n = count; n > 0; --n)
      for (std::size_t sum = greatest; sum >= rank; --sum) ways[n][sum] += ways[n - 1][sum - rank];
  double far = 0, all = 0;
  for (std::size_t sum = 0; sum <= greatest; ++sum) {
    all += ways[count][sum];
    if (std::abs(static_cast<double>(sum) - mean) >= distance) far += ways[count][sum];
  }
  return far / all;
}

/// By the normal distribution, with the variance that choices without return have.
double nearly(const std::vector<std::size_t>& ranks, std::size_t count, double distance) {
  const auto all = static_cast<double>(ranks.size()), chosen = static_cast<double>(count);
  double squares = 0;
  for (const std::size_t rank : ranks) squares += std::pow(static_cast<double>(rank) - all - 1, 2);
  const double variance = chosen * (all - chosen) / all * squares / (all - 1);
  if (variance <= 0) return 1;
  constexpr double half_a_rank = 1;
  return std::erfc(std::max(0.0, distance - half_a_rank) / std::sqrt(2 * variance));
}

}  // namespace

Interval paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  if (ratios.empty()) return {};
  Random random;
  return interval_around(median(ratios), confidence,
                         [&] { return median(resample(ratios, random)); });
}

double rank_test(std::span<const double> a, std::span<const double> b) {
  const std::size_t all = a.size() + b.size();
  if (a.empty() || b.empty()) return 1;
  const Ranks ranks = ranks_of(a, b);
  const double mean = static_cast<double>(a.size() * (all + 1));
  const double distance = std::abs(static_cast<double>(ranks.sum_of_first) - mean);
  return all <= most_exact ? exactly(ranks.doubled, a.size(), mean, distance)
                           : nearly(ranks.doubled, a.size(), distance);
}

double least_rank_test(std::size_t a, std::size_t b) {
  double ways = 1;  // To choose `a` of all.
  for (std::size_t i = 1; i <= a; ++i) ways *= static_cast<double>(b + i) / static_cast<double>(i);
  return std::min(1.0, 2 / ways);
}

}  // namespace weft::perf
