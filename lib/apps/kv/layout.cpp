#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <weft/kv.hpp>

#include "kv/shape.hpp"
#include "kv/share.hpp"
#include "kv/size.hpp"

namespace weft::kv {

namespace {

// Far above any model's, so that sums of a few of them fit into 64 bits.
constexpr std::size_t max_fields = 64, max_pieces = 8;
constexpr std::uint32_t max_context_parallel = 1024, max_interleave = 1 << 16;

template <typename... Args>
tl::unexpected<Error> wrong(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Code::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

Result<void> check_share(const char* what, Share share) {
  if (share.size < 1) return wrong("The {} size must be at least 1.", what);
  if (share.rank >= share.size)
    return wrong("The {} rank {} is not less than the size {}.", what, share.rank, share.size);
  return {};
}

Result<void> check_parallel(const Parallel& parallel) {
  const ContextParallel& dcp = parallel.dcp;
  if (dcp.size < 1 || dcp.size > max_context_parallel)
    return wrong("The context-parallel size must be 1 to {}, not {}.", max_context_parallel,
                 dcp.size);
  if (dcp.interleave < 1 || dcp.interleave > max_interleave)
    return wrong("Context parallelism interleaves 1 to {} tokens, not {}.", max_interleave,
                 dcp.interleave);
  return check_share("tensor-parallel", parallel.tp).and_then([&] {
    return check_share("data-parallel", parallel.dp);
  });
}

Result<void> check_layers(const Group& group, std::size_t index) {
  if (group.layers.empty()) return wrong("Group {} has no layers.", index);
  const auto disorder = std::adjacent_find(group.layers.begin(), group.layers.end(),
                                           [](auto a, auto b) { return a >= b; });
  if (disorder != group.layers.end())
    return wrong("The layers of group {} must ascend, but {} follows {}.", index, disorder[1],
                 disorder[0]);
  return {};
}

Result<void> check_numbers(const Group& group, std::size_t index) {
  const std::pair<const char*, std::uint64_t> positive[] = {
      {"blocks", group.blocks},
      {"block_alignment", group.block_alignment},
  };
  for (const auto& [name, value] : positive)
    if (value == 0) return wrong("Group {} has {} = 0.", index, name);
  if (group.fields.empty() || group.fields.size() > max_fields)
    return wrong("Group {} has {} fields; 1 to {} are possible.", index, group.fields.size(),
                 max_fields);
  if (is_state(group) && group.window != 0)
    return wrong("Group {} holds states and can't have a window.", index);
  return {};
}

Result<void> check_vector(const Field& field, std::size_t index) {
  const bool empty = std::any_of(field.vector.begin(), field.vector.end(),
                                 [](const Piece& piece) { return piece.elements == 0; });
  if (field.vector.empty() || empty || field.vector.size() > max_pieces)
    return wrong(
        "The field \"{}\" of group {} has {} pieces; it needs 1 to {}, none of them empty.",
        field.name, index, field.vector.size(), max_pieces);
  if (vector_bits(field) % 8 != 0)
    return wrong("The vectors of the field \"{}\" of group {} have {} bits: no whole bytes.",
                 field.name, index, vector_bits(field));
  return {};
}

Result<void> check_rows(const Group& group, const Field& field, std::size_t index) {
  if (field.tokens_per_row == 0 || field.rows == 0)
    return wrong("The field \"{}\" of group {} has no rows.", field.name, index);
  if (is_state(group) && field.tokens_per_row != 1)
    return wrong("The field \"{}\" of group {} is a state and has no tokens per row.", field.name,
                 index);
  if (!is_state(group) && field.rows != 1)
    return wrong("The field \"{}\" of group {} is of tokens: their number gives the rows, not {}.",
                 field.name, index, field.rows);
  if (!is_state(group) && group.tokens_per_block % field.tokens_per_row != 0)
    return wrong(
        "A row of the field \"{}\" of group {} has {} tokens, which do not divide the {} of "
        "a block.",
        field.name, index, field.tokens_per_row, group.tokens_per_block);
  return {};
}

Result<void> check_shares(const Group& group, const Field& field, std::size_t index,
                          const Parallel& parallel) {
  const std::uint32_t ranks = parallel.tp.size;
  if (field.heads == 0)
    return wrong("The field \"{}\" of group {} has no heads.", field.name, index);
  if (field.heads % ranks != 0 && ranks % field.heads != 0)
    return wrong("{} ranks can't share the {} heads of the field \"{}\" of group {} evenly.", ranks,
                 field.heads, field.name, index);
  const ContextParallel& dcp = parallel.dcp;
  if (is_state(group) || dcp.size == 1) return {};
  const std::uint32_t replicas = replicas_of(field.heads, ranks);
  if (replicas % dcp.size != 0)
    return wrong(
        "{} ranks can't share the tokens of the field \"{}\" of group {}: {} ranks hold a "
        "head.",
        dcp.size, field.name, index, replicas);
  if (group.tokens_per_block % dcp.interleave != 0)
    return wrong(
        "Context parallelism interleaves {} tokens, which do not divide the {} of a block of "
        "group {}.",
        dcp.interleave, group.tokens_per_block, index);
  if (dcp.interleave % field.tokens_per_row != 0)
    return wrong(
        "Context parallelism would cut rows of {} tokens of the field \"{}\" of group {}: "
        "it interleaves {}.",
        field.tokens_per_row, field.name, index, dcp.interleave);
  return {};
}

Result<void> check_beside(const Group& group, std::size_t field, std::size_t index) {
  if (!group.fields[field].beside) return {};
  const std::string& name = group.fields[field].name;
  if (field == 0) return wrong("The field \"{}\" of group {} is the first.", name, index);
  if (group.head_order != HeadOrder::nhd)
    return wrong(
        "The field \"{}\" of group {} can't lie beside another one where heads are the "
        "outer dimension.",
        name, index);
  if (rows_of(group, group.fields[field]) != rows_of(group, group.fields[field - 1]))
    return wrong("The field \"{}\" of group {} lies beside one that has other rows.", name, index);
  return {};
}

Result<void> check_fields(const Group& group, std::size_t index, const Parallel& parallel) {
  for (std::size_t i = 0; i < group.fields.size(); ++i) {
    const Field& field = group.fields[i];
    auto checked = check_vector(field, index)
                       .and_then([&] { return check_rows(group, field, index); })
                       .and_then([&] { return check_shares(group, field, index, parallel); })
                       .and_then([&] { return check_beside(group, i, index); });
    if (!checked) return checked;
  }
  return {};
}

Result<void> check_combination(const Group& group, std::size_t index) {
  if (has_layer_regions(group) && group.order != Order::layer_major)
    return wrong("Group {} is block-major and can't have a region per layer.", index);
  if (has_field_regions(group) && group.placement != Placement::split)
    return wrong("Group {} has its fields in one pool and can't have a region for each.", index);
  return {};
}

Result<void> check_group(const Group& group, std::size_t index, const Parallel& parallel) {
  return check_layers(group, index)
      .and_then([&] { return check_numbers(group, index); })
      .and_then([&] { return check_fields(group, index, parallel); })
      .and_then([&] { return check_combination(group, index); });
}

/// No field of a layer may have two places.
Result<void> check_disjoint(std::span<const Group> groups) {
  std::vector<std::tuple<std::uint32_t, std::string_view>> places;
  for (const Group& group : groups)
    for (const std::uint32_t layer : group.layers)
      for (const Field& field : group.fields) places.emplace_back(layer, field.name);
  std::sort(places.begin(), places.end());
  const auto twice = std::adjacent_find(places.begin(), places.end());
  if (twice != places.end())
    return wrong("Layer {} has the field \"{}\" twice.", std::get<0>(*twice), std::get<1>(*twice));
  return {};
}

std::uint64_t bytes_of_row(const Field& field, Share tp) {
  return vector_bits(field) / 8 * heads_of(field.heads, tp).count;
}

}  // namespace

Result<Layout> Layout::create(std::vector<Group> groups, Parallel parallel) {
  if (groups.empty()) return wrong("A layout needs at least one group.");
  if (auto ok = check_parallel(parallel); !ok) return fail(std::move(ok).error());

  Layout layout(std::move(groups), parallel);
  Size total(0);
  for (std::size_t i = 0; i < layout.groups_.size(); ++i) {
    const Group& group = layout.groups_[i];
    if (auto ok = check_group(group, i, parallel); !ok) return fail(std::move(ok).error());
    const auto shape = shape_of(group, parallel.tp);
    if (shape)
      for (const std::uint64_t bytes : shape->region_bytes) total = total + bytes;
    if (!shape || !total.fits())
      return wrong("The size of group {} ({} layers, {} blocks of {} tokens) exceeds 64 bits.", i,
                   group.layers.size(), group.blocks, group.tokens_per_block);
    layout.region_bytes_.insert(layout.region_bytes_.end(), shape->region_bytes.begin(),
                                shape->region_bytes.end());
  }
  if (auto ok = check_disjoint(layout.groups_); !ok) return fail(std::move(ok).error());
  layout.bytes_ = total.value();
  return layout;
}

HeadRange Layout::heads(std::size_t group, std::size_t field) const noexcept {
  return heads_of(groups_[group].fields[field].heads, parallel_.tp);
}

std::uint64_t Layout::bytes_per_token() const noexcept {
  std::uint64_t bytes = 0;
  for (const Group& group : groups_)
    if (!is_state(group))
      for (const Field& field : group.fields)
        bytes += bytes_of_row(field, parallel_.tp) * group.layers.size() / field.tokens_per_row;
  return bytes;
}

std::uint64_t Layout::state_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Group& group : groups_)
    if (is_state(group))
      for (const Field& field : group.fields)
        bytes += bytes_of_row(field, parallel_.tp) * field.rows * group.layers.size();
  return bytes;
}

}  // namespace weft::kv
