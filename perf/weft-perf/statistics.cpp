#include "statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <random>

namespace weft::perf {
namespace {

constexpr std::size_t resamples = 4000;

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

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Interval paired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) ratios.push_back(a[i] / b[i]);
  if (ratios.empty()) return {};
  Random random;
  return interval_around(median(ratios), confidence,
                         [&] { return median(resample(ratios, random)); });
}

Interval unpaired_ratio(std::span<const double> a, std::span<const double> b, double confidence) {
  const auto ratio = [](const std::vector<double>& above, const std::vector<double>& below) {
    const double divisor = median(below);
    return divisor > 0 ? median(above) / divisor : 0;
  };
  if (a.empty() || b.empty()) return {};
  Random random;
  return interval_around(ratio({a.begin(), a.end()}, {b.begin(), b.end()}), confidence,
                         [&] { return ratio(resample(a, random), resample(b, random)); });
}

}  // namespace weft::perf
