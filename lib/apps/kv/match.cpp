#include "kv/match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "kv/shape.hpp"

namespace weft::kv {

namespace {

std::string text_of(const std::vector<Piece>& vector) {
  std::string text;
  for (const Piece& piece : vector)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", piece.elements, name_of(piece.type));
  return text;
}

Result<void> check_same_field(const Field& src, const Field& dst, std::uint32_t layer) {
  const std::tuple<const char*, std::uint64_t, std::uint64_t> numbers[] = {
      {"heads", src.heads, dst.heads},
      {"tokens per row", src.tokens_per_row, dst.tokens_per_row},
      {"rows per request", src.rows, dst.rows},
  };
  for (const auto& [what, here, there] : numbers)
    if (here != there)
      return fail(Code::invalid_argument,
                  fmt::format("The caches differ: the field \"{}\" of layer {} has {} {} at the "
                              "source and {} at the destination.",
                              src.name, layer, here, what, there));
  if (src.vector != dst.vector)
    return fail(Code::invalid_argument,
                fmt::format("The caches differ: a vector of the field \"{}\" of layer {} is {} at "
                            "the source and {} at the destination.",
                            src.name, layer, text_of(src.vector), text_of(dst.vector)));
  return {};
}

Result<void> check_same_kind(const Group& src, const Group& dst, std::uint32_t layer) {
  if (is_state(src) != is_state(dst))
    return fail(Code::invalid_argument,
                fmt::format("The caches differ: layer {} keeps a state at the {} and tokens at the "
                            "other side.",
                            layer, is_state(src) ? "source" : "destination"));
  if (src.window != dst.window)
    return fail(Code::invalid_argument,
                fmt::format("The caches differ: layer {} has a window of {} tokens at the source "
                            "and of {} at the destination.",
                            layer, src.window, dst.window));
  return {};
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> common_layers(const Group& src,
                                                                   const Group& dst) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> common;
  std::uint32_t i = 0, j = 0;
  while (i < src.layers.size() && j < dst.layers.size()) {
    if (src.layers[i] == dst.layers[j]) common.emplace_back(i, j);
    const bool forward = src.layers[i] <= dst.layers[j];
    j += src.layers[i] >= dst.layers[j] ? 1 : 0;
    i += forward ? 1 : 0;
  }
  return common;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> common_fields(const Group& src,
                                                                   const Group& dst) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> common;
  for (std::uint32_t j = 0; j < dst.fields.size(); ++j)
    for (std::uint32_t i = 0; i < src.fields.size(); ++i)
      if (src.fields[i].name == dst.fields[j].name) common.emplace_back(i, j);
  return common;
}

/// Ascending, without repetitions.
using LayerNumbers = std::vector<std::uint32_t>;

LayerNumbers in_order(LayerNumbers layers) {
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

LayerNumbers numbers_of(const Layout& layout) {
  LayerNumbers layers;
  for (const Group& group : layout.groups())
    layers.insert(layers.end(), group.layers.begin(), group.layers.end());
  return in_order(std::move(layers));
}

std::string fields_in(const Layout& layout, std::uint32_t layer) {
  std::vector<std::string> names;
  for (const Group& group : layout.groups())
    if (std::binary_search(group.layers.begin(), group.layers.end(), layer))
      for (const Field& field : group.fields) names.push_back(field.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// A layer that both hold has something in common: else they are of different models.
Result<void> check_something_common(const Layout& src, const Layout& dst,
                                    const std::vector<Match>& matches) {
  LayerNumbers matched;
  for (const Match& match : matches)
    for (const auto& [i, j] : match.layers)
      matched.push_back(dst.groups()[match.dst_group].layers[j]);
  matched = in_order(std::move(matched));
  const LayerNumbers here = numbers_of(src);
  const auto in = [](const LayerNumbers& layers, std::uint32_t layer) {
    return std::binary_search(layers.begin(), layers.end(), layer);
  };
  for (const std::uint32_t layer : numbers_of(dst))
    if (in(here, layer) && !in(matched, layer))
      return fail(Code::invalid_argument,
                  fmt::format("The caches hold different models: layer {} keeps {} at the source "
                              "and {} at the destination.",
                              layer, fields_in(src, layer), fields_in(dst, layer)));
  return {};
}

}  // namespace

Result<std::vector<Match>> matches_of(const Layout& src, const Layout& dst) {
  if (src.groups().empty() || dst.groups().empty())
    return fail(Code::invalid_argument, "A cache that was moved from holds nothing.");
  std::vector<Match> matches;
  for (std::size_t d = 0; d < dst.groups().size(); ++d)
    for (std::size_t s = 0; s < src.groups().size(); ++s) {
      const Group& from = src.groups()[s];
      const Group& to = dst.groups()[d];
      Match match{s, d, common_layers(from, to), common_fields(from, to)};
      if (match.layers.empty() || match.fields.empty()) continue;
      const std::uint32_t layer = to.layers[match.layers.front().second];
      if (auto ok = check_same_kind(from, to, layer); !ok) return fail(std::move(ok.error()));
      for (const auto& [i, j] : match.fields)
        if (auto ok = check_same_field(from.fields[i], to.fields[j], layer); !ok)
          return fail(std::move(ok.error()));
      matches.push_back(std::move(match));
    }
  if (auto ok = check_something_common(src, dst, matches); !ok) return fail(std::move(ok.error()));
  return matches;
}

}  // namespace weft::kv
