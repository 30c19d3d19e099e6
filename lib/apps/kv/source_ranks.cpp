#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <weft/kv.hpp>

#include "kv/layer_range.hpp"
#include "kv/match.hpp"
#include "kv/shape.hpp"
#include "kv/share.hpp"

namespace weft::kv {

namespace {

/// Each field of a layer comes from one stage.
Result<void> check_stages(std::span<const Layout> stages) {
  std::vector<std::tuple<std::uint32_t, std::string_view, std::size_t>> held;
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (const Group& group : stages[stage].groups())
      for (const std::uint32_t layer : group.layers)
        for (const Field& field : group.fields) held.emplace_back(layer, field.name, stage);
  std::sort(held.begin(), held.end());
  const auto twice = std::adjacent_find(held.begin(), held.end(), [](const auto& a, const auto& b) {
    return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b);
  });
  if (twice == held.end()) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("Stages {} and {} both hold the field \"{}\" of layer {}.", std::get<2>(twice[0]),
                  std::get<2>(twice[1]), std::get<1>(*twice), std::get<0>(*twice)));
}

bool has_layers(const Match& match, const Layout& dst, const std::optional<LayerRange>& range) {
  const Group& group = dst.groups()[match.dst_group];
  return std::any_of(match.layers.begin(), match.layers.end(),
                     [&](const auto& pair) { return contains(range, group.layers[pair.second]); });
}

/// The tokens of a request that a group wants.
TokenRange within_window(const Group& group, TokenRange tokens) noexcept {
  if (group.window == 0 || tokens.count <= group.window) return tokens;
  return {tokens.first + tokens.count - group.window, group.window};
}

bool sends(const Match& match, const Layout& dst, const Parallel& from,
           const std::optional<TokenRange>& tokens) {
  const Group& group = dst.groups()[match.dst_group];
  const bool state = is_state(group);
  // Without a number of tokens, a request that is long enough for every rank.
  const TokenRange all{0, ~std::uint64_t{0}};
  if (!state &&
      !meet(Stripes(from), Stripes(dst.parallel()), tokens ? within_window(group, *tokens) : all))
    return false;
  return std::any_of(match.fields.begin(), match.fields.end(), [&](const auto& pair) {
    return heads_to_send(group.fields[pair.second].heads, from, dst.parallel(), state).count > 0;
  });
}

}  // namespace

Result<std::vector<Rank>> source_ranks(std::span<const Layout> stages, const Layout& dst,
                                       std::optional<TokenRange> tokens,
                                       std::optional<LayerRange> layers) {
  if (auto ok = check_stages(stages); !ok) return fail(std::move(ok.error()));
  if (auto ok = check_layer_range(dst, layers); !ok) return fail(std::move(ok.error()));
  if (tokens && tokens->count > ~std::uint64_t{0} - tokens->first)
    return fail(Code::invalid_argument,
                fmt::format("{} tokens from token {} on end beyond 64 bits.", tokens->count,
                            tokens->first));
  std::vector<Rank> ranks;
  for (std::uint32_t pp = 0; pp < stages.size(); ++pp) {
    auto matches = matches_of(stages[pp], dst);
    if (!matches) return fail(std::move(matches.error()));
    std::erase_if(*matches, [&](const Match& match) { return !has_layers(match, dst, layers); });
    Parallel from = stages[pp].parallel();
    for (from.tp.rank = 0; from.tp.rank < from.tp.size; ++from.tp.rank)
      if (std::any_of(matches->begin(), matches->end(),
                      [&](const Match& match) { return sends(match, dst, from, tokens); }))
        ranks.push_back({pp, from.tp.rank, from.dp.rank});
  }
  return ranks;
}

}  // namespace weft::kv
