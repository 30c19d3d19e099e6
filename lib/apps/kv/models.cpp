#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <weft/kv_models.hpp>

#include "kv/known_configs.hpp"
#include "kv/layer_range.hpp"
#include "kv/shape.hpp"

namespace weft::kv {

namespace {

bool same_letters(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

std::vector<Model> read_known() {
  std::vector<Model> read;
  for (const KnownConfig& known : known_configs()) {
    // A test reads them all.
    auto model = from_config(known.json, std::string(known.name));
    if (!model) continue;
    model->id = known.id;
    read.push_back(std::move(*model));
  }
  return read;
}

/// The server chooses the type of attention and latents.
Field in_type(Field field, DType type) {
  for (Piece& piece : field.vector)
    if (piece.type == DType::bf16) piece.type = type;
  return field;
}

std::vector<Field> fields_in(const Kind& kind, DType type) {
  std::vector<Field> fields = kind.fields;
  if (kind.state) return fields;
  for (Field& field : fields) field = in_type(std::move(field), type);
  return fields;
}

std::uint64_t bytes_of(const Field& field) noexcept {
  return vector_bits(field) / 8 * field.heads * field.rows;
}

Regions regions_for(Placement placement, Regions asked) noexcept {
  if (placement == Placement::split) return asked;
  return asked == Regions::per_layer || asked == Regions::per_layer_and_field ? Regions::per_layer
                                                                              : Regions::one;
}

/// A kind's layers of a stage; no layers if the stage has none.
Group group_of(const Kind& kind, const LayoutOptions& options) {
  Group group;
  for (const std::uint32_t layer : kind.layers)
    if (contains(options.layers, layer)) group.layers.push_back(layer);
  group.blocks = kind.state && options.state_blocks != 0 ? options.state_blocks : options.blocks;
  group.tokens_per_block = kind.state ? 0 : options.tokens_per_block;
  group.fields = fields_in(kind, options.dtype);
  group.placement = kind.name == "index" ? Placement::fused : options.placement;
  group.order = options.order;
  group.head_order = kind.state ? HeadOrder::nhd : options.head_order;
  group.regions = regions_for(group.placement, options.regions);
  group.block_padding = options.block_padding;
  group.block_alignment = options.block_alignment;
  group.window = kind.window;
  return group;
}

}  // namespace

std::span<const Model> models() noexcept {
  static const std::vector<Model> known = read_known();
  return known;
}

Result<Model> find_model(std::string_view name) {
  const auto known = models();
  const auto it = std::find_if(known.begin(), known.end(), [&](const Model& model) {
    return same_letters(model.name, name) || same_letters(model.id, name);
  });
  if (it != known.end()) return *it;
  std::vector<std::string_view> names;
  for (const Model& model : known) names.push_back(model.name);
  return fail(Code::not_found,
              fmt::format("No model \"{}\" is known; there are {}.", name, fmt::join(names, ", ")));
}

Result<Layout> Model::layout(const LayoutOptions& options) const {
  if (!options.state_blocks && options.blocks == 0)
    return fail(Code::invalid_argument, fmt::format("{} has blocks = 0.", name));
  if (options.tokens_per_block == 0)
    return fail(Code::invalid_argument, fmt::format("{} has tokens_per_block = 0.", name));
  std::vector<Group> groups;
  for (const Kind& kind : kinds)
    if (Group group = group_of(kind, options); !group.layers.empty())
      groups.push_back(std::move(group));
  if (groups.empty() && options.layers)
    return fail(Code::invalid_argument,
                fmt::format("{} keeps nothing in {} layers from layer {} on; it has {} layers.",
                            name, options.layers->count, options.layers->first, layers));
  return Layout::create(std::move(groups), options.parallel);
}

std::uint64_t Model::bytes_per_token(DType dtype) const noexcept {
  std::uint64_t bytes = 0;
  for (const Kind& kind : kinds)
    if (!kind.state)
      for (const Field& field : kind.fields)
        bytes += bytes_of(in_type(field, dtype)) * kind.layers.size() / field.tokens_per_row;
  return bytes;
}

std::uint64_t Model::state_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Kind& kind : kinds)
    if (kind.state)
      for (const Field& field : kind.fields) bytes += bytes_of(field) * kind.layers.size();
  return bytes;
}

std::uint64_t Model::request_bytes(std::uint64_t tokens, DType dtype) const noexcept {
  std::uint64_t bytes = state_bytes();
  for (const Kind& kind : kinds) {
    if (kind.state) continue;
    const std::uint64_t kept =
        kind.window != 0 ? std::min<std::uint64_t>(tokens, kind.window) : tokens;
    for (const Field& field : kind.fields) {
      const std::uint64_t rows = (kept + field.tokens_per_row - 1) / field.tokens_per_row;
      bytes += bytes_of(in_type(field, dtype)) * kind.layers.size() * rows;
    }
  }
  return bytes;
}

LayerRange stage_layers(std::uint32_t layers, Share pp) noexcept {
  const std::uint32_t each = layers / pp.size, left = layers % pp.size;
  // The last `left` stages before the last one have one layer more.
  const auto first_longer = static_cast<std::int64_t>(pp.size) - 1 - left;
  const std::int64_t rank = pp.rank;
  const auto longer_before =
      std::clamp<std::int64_t>(rank - std::max<std::int64_t>(first_longer, 0), 0, left);
  const bool longer = left > 0 && rank >= first_longer && rank + 1 < pp.size;
  return {pp.rank * each + static_cast<std::uint32_t>(longer_before), each + (longer ? 1 : 0)};
}

}  // namespace weft::kv
