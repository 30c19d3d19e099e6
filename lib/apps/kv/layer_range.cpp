#include "kv/layer_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kv/match.hpp"

namespace weft::kv {

Result<void> check_layer_range(const Layout& layout, const std::optional<LayerRange>& range) {
  if (!range) return {};
  std::uint32_t last = 0;
  for (const Group& group : layout.groups()) last = std::max(last, group.layers.back());
  if (range->count > 0 && range->first <= last) return {};
  return fail(Code::invalid_argument,
              fmt::format("No such layers: {} from layer {} on, where the last layer is {}.",
                          range->count, range->first, last));
}

Result<std::vector<LayerRange>> layer_ranges(const Layout& src, const Layout& dst,
                                             std::uint32_t count) {
  if (count == 0) return fail(Code::invalid_argument, "Layers can't be cut into 0 ranges.");
  const auto matches = matches_of(src, dst);
  if (!matches) return fail(matches.error());
  std::set<std::uint32_t> common;
  for (const Match& match : *matches)
    for (const auto& [i, j] : match.layers) common.insert(dst.groups()[match.dst_group].layers[j]);
  const std::vector<std::uint32_t> layers(common.begin(), common.end());
  const std::uint64_t ranges = std::min<std::uint64_t>(count, layers.size());
  std::vector<LayerRange> cut;
  for (std::uint64_t i = 0; i < ranges; ++i) {
    const std::uint32_t first = layers[i * layers.size() / ranges];
    const std::uint32_t last = layers[(i + 1) * layers.size() / ranges - 1];
    cut.push_back({first, last - first + 1});
  }
  return cut;
}

}  // namespace weft::kv
