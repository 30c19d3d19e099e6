#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <weft/kv.hpp>

#include "kv/shape.hpp"
#include "kv/size.hpp"

namespace weft::kv {

namespace {

constexpr std::uint32_t max_tp_size = 8;

Result<void> check_tensor_parallel(TensorParallel tp) {
  if (tp.size < 1 || tp.size > max_tp_size) {
    return fail(
        Code::invalid_argument,
        fmt::format("The tensor-parallel size must be 1 to {}, not {}.", max_tp_size, tp.size));
  }
  if (tp.rank >= tp.size) {
    return fail(
        Code::invalid_argument,
        fmt::format("The tensor-parallel rank {} is not less than the size {}.", tp.rank, tp.size));
  }
  return {};
}

Result<void> check_layers(const Group& group, std::size_t index) {
  if (group.layers.empty()) {
    return fail(Code::invalid_argument, fmt::format("Group {} has no layers.", index));
  }
  const auto disorder = std::adjacent_find(group.layers.begin(), group.layers.end(),
                                           [](auto a, auto b) { return a >= b; });
  if (disorder != group.layers.end()) {
    return fail(Code::invalid_argument,
                fmt::format("The layers of group {} must ascend, but {} follows {}.", index,
                            disorder[1], disorder[0]));
  }
  return {};
}

Result<void> check_numbers(const Group& group, std::size_t index) {
  const std::pair<const char*, std::uint64_t> positive[] = {
      {"blocks", group.blocks},
      {"tokens_per_block", group.tokens_per_block},
      {"kv_heads", group.kv_heads},
      {"head_size", group.head_size},
      {"element_size", group.element_size},
      {"block_alignment", group.block_alignment},
  };
  for (const auto& [name, value] : positive) {
    if (value == 0) {
      return fail(Code::invalid_argument, fmt::format("Group {} has {} = 0.", index, name));
    }
  }
  return {};
}

Result<void> check_combination(const Group& group, std::size_t index, std::uint32_t tp_size) {
  if (group.parts == Parts::latent && group.kv_heads != 1) {
    return fail(Code::invalid_argument,
                fmt::format("Group {} keeps latents, which count as 1 KV head, but has {}.", index,
                            group.kv_heads));
  }
  if (group.kv_heads % tp_size != 0 && tp_size % group.kv_heads != 0) {
    return fail(Code::invalid_argument,
                fmt::format("{} ranks can't share the {} KV heads of group {} evenly.", tp_size,
                            group.kv_heads, index));
  }
  if (has_layer_regions(group) && group.order != Order::layer_major) {
    return fail(Code::invalid_argument,
                fmt::format("Group {} is block-major and can't have a region per layer.", index));
  }
  if (has_part_regions(group) && group.parts != Parts::split) {
    return fail(
        Code::invalid_argument,
        fmt::format("Group {} doesn't split keys from values and can't have a region for each.",
                    index));
  }
  return {};
}

Result<void> check_group(const Group& group, std::size_t index, std::uint32_t tp_size) {
  return check_layers(group, index)
      .and_then([&] { return check_numbers(group, index); })
      .and_then([&] { return check_combination(group, index, tp_size); });
}

Result<void> check_disjoint(std::span<const Group> groups) {
  std::vector<std::uint32_t> layers;
  for (const Group& group : groups) {
    layers.insert(layers.end(), group.layers.begin(), group.layers.end());
  }
  std::sort(layers.begin(), layers.end());
  const auto twice = std::adjacent_find(layers.begin(), layers.end());
  if (twice != layers.end()) {
    return fail(Code::invalid_argument, fmt::format("Layer {} is in two groups.", *twice));
  }
  return {};
}

}  // namespace

Result<Layout> Layout::create(std::vector<Group> groups, TensorParallel tp) {
  if (groups.empty()) return fail(Code::invalid_argument, "A layout needs at least one group.");
  if (auto ok = check_tensor_parallel(tp); !ok) return fail(std::move(ok).error());

  Layout layout(std::move(groups), tp);
  Size total(0);
  for (std::size_t i = 0; i < layout.groups_.size(); ++i) {
    const Group& group = layout.groups_[i];
    if (auto ok = check_group(group, i, tp.size); !ok) return fail(std::move(ok).error());
    const auto shape = shape_of(group, layout.heads(i).count);
    if (shape) total = total + Size(shape->region_bytes) * regions_of(group);
    if (!shape || !total.fits()) {
      return fail(Code::invalid_argument,
                  fmt::format("The size of group {} ({} layers, {} blocks of {} tokens) exceeds 64 "
                              "bits.",
                              i, group.layers.size(), group.blocks, group.tokens_per_block));
    }
    layout.region_bytes_.insert(layout.region_bytes_.end(), regions_of(group), shape->region_bytes);
  }
  if (auto ok = check_disjoint(layout.groups_); !ok) return fail(std::move(ok).error());
  layout.bytes_ = total.value();
  return layout;
}

HeadRange Layout::heads(std::size_t group) const noexcept {
  return heads_of(groups_[group].kv_heads, tp_);
}

std::uint64_t Layout::bytes_per_token() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    bytes += std::uint64_t{group.head_size} * group.element_size * heads(i).count *
             parts_of(group) * group.layers.size();
  }
  return bytes;
}

}  // namespace weft::kv
